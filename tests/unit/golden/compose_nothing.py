"""A composition of nothing."""

from streamproof import *


class Shop(Model):
    def parts(self):
        return Parts()
