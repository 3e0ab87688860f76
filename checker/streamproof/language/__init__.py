"""The modelling language: ordinary Python in, a `System` out."""
