"""Google's and Azure's stores: objects through obstore, credentials through gcsfs and adlfs."""
