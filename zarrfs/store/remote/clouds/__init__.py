"""Google's and Azure's stores: obstore transfers objects, gcsfs and adlfs find credentials."""
