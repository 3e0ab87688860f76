"""A machine that is a part of itself."""

from streamproof import *


class Shop(Model):
    def parts(self):
        return Parts(inner=Shop())
