"""Arrow: a table of columns in one file, which programs map. https://arrow.apache.org/docs/format"""
