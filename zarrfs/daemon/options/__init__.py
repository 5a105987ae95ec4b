"""Mount options (-o), and the configs that follow from them."""
