"""One module for each format; `type_names` has the types that the formats can represent."""
