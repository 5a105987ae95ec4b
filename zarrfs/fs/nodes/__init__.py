"""Groups, arrays and their files, and the numbers by which the kernel knows them."""
