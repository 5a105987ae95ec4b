"""S3: obstore reads and writes objects; s3fs lists, deletes and uploads in parts."""
