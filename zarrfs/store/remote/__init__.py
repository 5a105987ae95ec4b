"""Stores of objects behind URLs: buckets, web servers, archives, references."""
