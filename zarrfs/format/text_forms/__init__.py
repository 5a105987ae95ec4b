"""What people type for data types, codecs and fill values, as metadata has it."""
