"""Blocks of the networks that the paper compares with, for the recipes in `recipes/rivals`.

Where a rival differs by switches of `PolicyConfig` alone it has a recipe and no block.
"""
