"""Documents of references: `document` reads one within bounds, `targets` says where it may lead."""
