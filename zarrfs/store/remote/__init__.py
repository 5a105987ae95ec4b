"""Objects behind URLs: buckets, web servers, archives, references."""
