"""Ways in which a learner reaches a number, as users write them: wherever the number is edited, the program is another.

Modules are written with the number 1 or 2 in place of `#V#`; the learner is `f` of the module `k`.
"""

import importlib
import sys

import pytest
import scipy.special  # noqa: F401  (numpy's parts load once per process)

from jaxbandit.programs import program_of

REACHED = {
    "kwdefault": {
        "k": ("def f(a, *, c=#V#):\n    return a + c\n"),
    },
    "constant as a default": {  # the source of f is the same
        "k": ("C = #V#\ndef f(a, c=C):\n    return a + c\n"),
    },
    "constant as a kwdefault": {
        "k": ("C = #V#\ndef f(a, *, c=C):\n    return a + c\n"),
    },
    "method": {
        "k": (
            "class T:\n"
            "    def g(self, a):\n"
            "        return a + #V#\n"
            "t = T()\n"
            "def f(a):\n"
            "    return t.g(a)\n"
        ),
    },
    "classmethod": {
        "k": (
            "class T:\n"
            "    @classmethod\n"
            "    def g(cls, a):\n"
            "        return a + #V#\n"
            "def f(a):\n"
            "    return T.g(a)\n"
        ),
    },
    "class constant": {
        "k": ("class T:\n    c = #V#\ndef f(a):\n    return a + T.c\n"),
    },
    "class tuple": {
        "k": ("class T:\n    c = (#V#, 0)\ndef f(a):\n    return a + T.c[0]\n"),
    },
    "class array": {
        "k": (
            "import numpy as np\n"
            "class T:\n"
            "    c = np.array([#V#], np.int32)\n"
            "def f(a):\n"
            "    return a + T.c[0]\n"
        ),
    },
    "class jitted": {
        "k": (
            "import jax\n"
            "class T:\n"
            "    g = staticmethod(jax.jit(lambda a: a + #V#))\n"
            "    h = jax.jit(lambda a: a + #V#)\n"
            "def f(a):\n"
            "    return T.h(a)\n"
        ),
    },
    "partial": {
        "k": (
            "import functools\n"
            "def g(c, a):\n"
            "    return a + c\n"
            "f0 = functools.partial(g, #V#)\n"
            "def f(a):\n"
            "    return f0(a)\n"
        ),
    },
    "partialmethod": {
        "k": (
            "import functools\n"
            "class T:\n"
            "    def g(self, c, a):\n"
            "        return a + c\n"
            "    h = functools.partialmethod(g, #V#)\n"
            "def f(a):\n"
            "    return T().h(a)\n"
        ),
    },
    "lambda": {
        "k": ("g = lambda a: a + #V#\ndef f(a):\n    return g(a)\n"),
    },
    "lambda in a dict": {
        "k": ("G = {\n  'x': lambda a: a + #V#,\n  'y': 3,\n}\ndef f(a):\n    return G['x'](a)\n"),
    },
    "numpy array": {
        "k": (
            "import numpy as np\n"
            "C = np.full(5000, 0, np.int32); C[2500] = #V#\n"
            "def f(a):\n"
            "    return a + C[2500]\n"
        ),
    },
    "import inside": {
        "k": ("def f(a):\n    import k_near\n    return k_near.g(a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "from-import inside": {
        "k": ("def f(a):\n    from k_near import g as h\n    return h(a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "from-import constant inside": {
        "k": ("def f(a):\n    from k_near import C\n    return a + C\n"),
        "k_near": ("C = #V#\n"),
    },
    "import inside a package": {
        "k": ("def f(a):\n    import kp.sub\n    return kp.sub.g(a)\n"),
        "kp/__init__": (""),
        "kp/sub": ("def g(a):\n    return a + #V#\n"),
    },
    "relative import inside": {
        "k": ("import kp.sub\ndef f(a):\n    return kp.sub.g(a)\n"),
        "kp/__init__": (""),
        "kp/sub": ("def g(a):\n    from . import deep\n    return deep.h(a)\n"),
        "kp/deep": ("def h(a):\n    return a + #V#\n"),
    },
    "decorator": {
        "k": (
            "import functools\n"
            "def deco(g):\n"
            "    @functools.wraps(g)\n"
            "    def inner(a):\n"
            "        return g(a) + #V#\n"
            "    return inner\n"
            "@deco\n"
            "def f(a):\n"
            "    return a\n"
        ),
    },
    "decorator without wraps": {
        "k": (
            "def deco(g):\n"
            "    def inner(a):\n"
            "        return g(a) + #V#\n"
            "    return inner\n"
            "@deco\n"
            "def f(a):\n"
            "    return a\n"
        ),
    },
    "decorator argument": {
        "k": (
            "import functools\n"
            "def deco(c):\n"
            "    def d(g):\n"
            "        @functools.wraps(g)\n"
            "        def inner(a):\n"
            "            return g(a) + c\n"
            "        return inner\n"
            "    return d\n"
            "N = #V#\n"
            "@deco(N)\n"
            "def f(a):\n"
            "    return a\n"
        ),
    },
    "class decorator": {
        "k": (
            "import functools\n"
            "class Deco:\n"
            "    def __init__(self, g):\n"
            "        functools.update_wrapper(self, g)\n"
            "        self.g = g\n"
            "    def __call__(self, a):\n"
            "        return self.g(a) + #V#\n"
            "@Deco\n"
            "def g(a):\n"
            "    return a\n"
            "def f(a):\n"
            "    return g(a)\n"
        ),
    },
    "dataclass field": {
        "k": (
            "import dataclasses\n"
            "@dataclasses.dataclass\n"
            "class D:\n"
            "    c: int = #V#\n"
            "d = D()\n"
            "def f(a):\n"
            "    return a + d.c\n"
        ),
    },
    "dataclass default inside": {
        "k": (
            "import dataclasses\n"
            "@dataclasses.dataclass\n"
            "class D:\n"
            "    c: int = #V#\n"
            "def f(a):\n"
            "    return a + D().c\n"
        ),
    },
    "dataclass factory": {
        "k": (
            "import dataclasses\n"
            "@dataclasses.dataclass\n"
            "class D:\n"
            "    c: list = dataclasses.field(default_factory=lambda: [#V#])\n"
            "def f(a):\n"
            "    return a + D().c[0]\n"
        ),
    },
    "two modules away": {
        "k": ("import k_near\ndef f(a):\n    return k_near.g(a)\n"),
        "k_near": ("import k_far\ndef g(a):\n    return k_far.h(a)\n"),
        "k_far": ("def h(a):\n    return a + #V#\n"),
    },
    "two modules away, from": {
        "k": ("from k_near import g\ndef f(a):\n    return g(a)\n"),
        "k_near": ("from k_far import h\ndef g(a):\n    return h(a)\n"),
        "k_far": ("C = #V#\ndef h(a):\n    return a + C\n"),
    },
    "package attribute chain": {
        "k": ("import kp.sub\ndef f(a):\n    return kp.sub.g(a)\n"),
        "kp/__init__": (""),
        "kp/sub": ("def g(a):\n    return a + #V#\n"),
    },
    "jitted helper": {
        "k": ("import jax\n@jax.jit\ndef g(a):\n    return a + #V#\ndef f(a):\n    return g(a)\n"),
    },
    "jitted with static": {
        "k": (
            "import functools, jax\n"
            "@functools.partial(jax.jit, static_argnames='c')\n"
            "def g(a, c=#V#):\n"
            "    return a + c\n"
            "def f(a):\n"
            "    return g(a)\n"
        ),
    },
    "vmapped helper": {
        "k": ("import jax\ng = jax.vmap(lambda a: a + #V#)\ndef f(a):\n    return g(a)\n"),
    },
    "custom_jvp": {
        "k": (
            "import jax\n"
            "@jax.custom_jvp\n"
            "def g(x):\n"
            "    return x\n"
            "g.defjvp(lambda p, t: (p[0], t[0] * #V#))\n"
            "def f(a):\n"
            "    return a + jax.grad(g)(1.0).astype('int32')\n"
        ),
    },
    "schedule object": {
        "k": (
            "class S:\n"
            "    def __init__(self, r): self.r = r\n"
            "    def __call__(self, t): return self.r\n"
            "s = S(#V#)\n"
            "def f(a):\n"
            "    return a + s(3)\n"
        ),
    },
    "schedule namedtuple method": {
        "k": (
            "from typing import NamedTuple\n"
            "class S(NamedTuple):\n"
            "    r: int\n"
            "    def at(self, t):\n"
            "        return self.r * #V#\n"
            "s = S(1)\n"
            "def f(a):\n"
            "    return a + s.at(3)\n"
        ),
    },
    "list subclass method": {
        "k": (
            "class L(list):\n"
            "    def at(self):\n"
            "        return #V#\n"
            "s = L()\n"
            "def f(a):\n"
            "    return a + s.at()\n"
        ),
    },
    "dict subclass method": {
        "k": (
            "class L(dict):\n"
            "    def at(self):\n"
            "        return #V#\n"
            "s = L()\n"
            "def f(a):\n"
            "    return a + s.at()\n"
        ),
    },
    "int subclass method": {
        "k": (
            "class L(int):\n"
            "    def at(self):\n"
            "        return self * #V#\n"
            "s = L(1)\n"
            "def f(a):\n"
            "    return a + s.at()\n"
        ),
    },
    "enum": {
        "k": (
            "import enum\nclass L(enum.Enum):\n    A = #V#\ndef f(a):\n    return a + L.A.value\n"
        ),
    },
    "intenum": {
        "k": (
            "import enum\nclass L(enum.IntEnum):\n    A = #V#\ndef f(a):\n    return a + int(L.A)\n"
        ),
    },
    "enum, dynamic": {
        "k": (
            "import enum\n"
            "class L(enum.IntEnum):\n"
            "    A = #V#\n"
            "    B = 7\n"
            "def f(a):\n"
            "    return a + min(int(x) for x in L)\n"
        ),
    },
    "function attribute": {
        "k": ("def g(a):\n    return a + g.c\ng.c = #V#\ndef f(a):\n    return g(a)\n"),
    },
    "bound builtin": {
        "k": ("look = {'x': #V#}.get\ndef f(a):\n    return a + look('x')\n"),
    },
    "deque": {
        "k": (
            "import collections\n"
            "import numpy as np\n"
            "C = np.zeros(2000, np.int32); C[1000] = #V#\n"
            "d = collections.deque([C])\n"
            "def f(a):\n"
            "    return a + d[0][1000]\n"
        ),
    },
    "itemgetter": {
        "k": (
            "import operator\n"
            "g = operator.itemgetter(#V# - 1)\n"
            "def f(a):\n"
            "    return a + g([1, 2])\n"
        ),
    },
    "shadowed stdlib name": {
        "k": ("import queue\ndef f(a):\n    return queue.g(a)\n"),
        "queue": ("def g(a):\n    return a + #V#\n"),
    },
    "property": {
        "k": (
            "class T:\n"
            "    @property\n"
            "    def c(self):\n"
            "        return #V#\n"
            "t = T()\n"
            "def f(a):\n"
            "    return a + t.c\n"
        ),
    },
    "cached_property": {
        "k": (
            "import functools\n"
            "class T:\n"
            "    @functools.cached_property\n"
            "    def c(self):\n"
            "        return #V#\n"
            "def f(a):\n"
            "    return a + T().c\n"
        ),
    },
    "inherited method": {
        "k": (
            "from k_near import Base\nclass T(Base):\n    pass\ndef f(a):\n    return a + T().c()\n"
        ),
        "k_near": ("class Base:\n    def c(self):\n        return #V#\n"),
    },
    "lru_cache": {
        "k": (
            "import functools\n"
            "@functools.lru_cache\n"
            "def g():\n"
            "    return #V#\n"
            "def f(a):\n"
            "    return a + g()\n"
        ),
    },
    "singledispatch": {
        "k": (
            "import functools\n"
            "@functools.singledispatch\n"
            "def g(x):\n"
            "    return 0\n"
            "@g.register\n"
            "def _(x: int):\n"
            "    return #V#\n"
            "def f(a):\n"
            "    return a + g(3)\n"
        ),
    },
    "slots": {
        "k": (
            "class T:\n"
            "    __slots__ = ('c',)\n"
            "    def __init__(self, c): self.c = c\n"
            "t = T(#V#)\n"
            "def f(a):\n"
            "    return a + t.c\n"
        ),
    },
    "mutable global changed": {
        "k": ("C = [0]\nC[0] = #V#\ndef f(a):\n    return a + C[0]\n"),
    },
    "global by getattr": {
        "k": ("import k_near\ndef f(a):\n    return getattr(k_near, 'g')(a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "inner class": {
        "k": ("def f(a):\n    class T:\n        def g(self): return #V#\n    return a + T().g()\n"),
    },
    "star import": {
        "k": ("from k_near import *\ndef f(a):\n    return g(a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "module alias attr": {
        "k": ("import k_near as kn\nh = kn\ndef f(a):\n    return a + h.TABLE['x'][0]\n"),
        "k_near": ("TABLE = {'x': [#V#]}\n"),
    },
    "tree_util Partial": {
        "k": (
            "import jax\n"
            "def g(c, a):\n"
            "    return a + c\n"
            "p = jax.tree_util.Partial(g, #V#)\n"
            "def f(a):\n"
            "    return p(a)\n"
        ),
    },
    "defaultdict factory": {
        "k": (
            "import collections\n"
            "D=collections.defaultdict(lambda: #V#)\n"
            "def f(a):\n"
            "    return a+D['z']\n"
        ),
    },
    "metaclass attr": {
        "k": (
            "class M(type):\n"
            "    c=#V#\n"
            "class T(metaclass=M):\n"
            "    pass\n"
            "def f(a):\n"
            "    return a+T.c\n"
        ),
    },
    "metaclass property": {
        "k": (
            "class M(type):\n"
            "    @property\n"
            "    def c(cls):\n"
            "        return #V#\n"
            "class T(metaclass=M):\n"
            "    pass\n"
            "def f(a):\n"
            "    return a+T.c\n"
        ),
    },
    "class dunder attr": {
        "k": ("class T:\n    __c__=#V#\ndef f(a):\n    return a+T.__c__\n"),
    },
    "function dunder attr": {
        "k": ("def g(a): return a+g.__c__\ng.__c__=#V#\ndef f(a):\n    return g(a)\n"),
    },
    "random.Random": {
        "k": ("import random\nr=random.Random(#V#)\ndef f(a):\n    return a+r.random()\n"),
    },
    "masked array": {
        "k": (
            "import numpy as np\n"
            "R=np.ma.array([1,2],mask=[False,#V#==1],fill_value=7)\n"
            "def f(a):\n"
            "    return a+int(R.filled()[1])\n"
        ),
    },
    "enum property": {
        "k": (
            "import enum\n"
            "class E(enum.Enum):\n"
            "    A=1\n"
            "    @property\n"
            "    def g(self): return #V#\n"
            "def f(a):\n"
            "    return a+E.A.g\n"
        ),
    },
    "enum classmethod": {
        "k": (
            "import enum\n"
            "class E(enum.Enum):\n"
            "    A=1\n"
            "    @classmethod\n"
            "    def g(cls): return #V#\n"
            "def f(a):\n"
            "    return a+E.g()\n"
        ),
    },
    "enum member attr": {
        "k": (
            "import enum\n"
            "class E(enum.Enum):\n"
            "    A=1\n"
            "E.A.extra=#V#\n"
            "def f(a):\n"
            "    return a+E.A.extra\n"
        ),
    },
    "monkeypatched stdlib": {
        "k": ("import math\nmath.mine=#V#\ndef f(a):\n    return a+math.mine\n"),
    },
    "monkeypatched library fn": {
        "k": (
            "import jax.numpy as jnp\njnp.mine=lambda a:a+#V#\ndef f(a):\n    return jnp.mine(a)\n"
        ),
    },
    "importlib by string": {
        "k": ("import importlib\ndef f(a):\n    return importlib.import_module('k_near').g(a)\n"),
        "k_near": ("def g(a): return a+#V#\n"),
    },
    "__import__ by string": {
        "k": ("def f(a):\n    return __import__('k_near').g(a)\n"),
        "k_near": ("def g(a): return a+#V#\n"),
    },
    "sys.modules": {
        "k": ("import sys, k_near\ndef f(a):\n    return sys.modules['k_near'].g(a)\n"),
        "k_near": ("def g(a): return a+#V#\n"),
    },
    "exec code string": {
        "k": ("exec('def g(a):\\n    return a+#V#')\ndef f(a):\n    return g(a)\n"),
    },
    "make_dataclass": {
        "k": (
            "import dataclasses\n"
            "T=dataclasses.make_dataclass('T',[('c',int,#V#)])\n"
            "def f(a):\n"
            "    return a+T().c\n"
        ),
    },
    "cyclic list": {
        "k": ("L=[0]; L.append(L); L[0]=#V#\ndef f(a):\n    return a+L[0]\n"),
    },
    "np frompyfunc": {
        "k": (
            "import numpy as np\np=np.frompyfunc(lambda a:a+#V#,1,1)\ndef f(a):\n    return p(a)\n"
        ),
    },
    "list of lambdas": {
        "k": ("G=[lambda a:a, lambda a:a+#V#]\ndef f(a):\n    return G[1](a)\n"),
    },
    "two lambdas on a line": {
        "k": ("g, h = (lambda a: a), (lambda a: a+#V#)\ndef f(a):\n    return h(a)\n"),
    },
    "module __getattr__": {
        "k": ("import k_near\ndef f(a):\n    return a+k_near.thing\n"),
        "k_near": (
            "def __getattr__(n):\n    if n=='thing': return #V#\n    raise AttributeError(n)\n"
        ),
    },
    "custom descriptor": {
        "k": (
            "class D:\n"
            "    def __init__(s,c): s.c=c\n"
            "    def __get__(s,o,t): return s.c\n"
            "class T:\n"
            "    x=D(#V#)\n"
            "def f(a):\n"
            "    return a+T().x\n"
        ),
    },
    "numpy rng state": {
        "k": (
            "import numpy as np\n"
            "r=np.random.default_rng(#V#)\n"
            "def f(a):\n"
            "    return a+r.integers(5)\n"
        ),
    },
    "bound method in a class": {
        "k": (
            "class Table:\n"
            "    def __init__(self, c): self.c = c\n"
            "    def get(self): return self.c\n"
            "TABLE = Table(#V#)\n"
            "class T:\n"
            "    look = TABLE.get\n"
            "def f(a):\n"
            "    return a + T.look()\n"
        ),
    },
    "library function in a class": {
        "k": (
            "import statistics\n"
            "class T:\n"
            "    g = staticmethod([statistics.mean, statistics.median][#V# - 1])\n"
            "def f(a):\n"
            "    return a + T.g([1, 2, 0])\n"
        ),
    },
    "fields of a dtype": {
        "k": (
            "import numpy as np\n"
            "names = 'ab' if #V# == 1 else 'ba'\n"
            "C = np.array([(1, 2)], dtype=[(name, 'i4') for name in names])\n"
            "def f(a):\n"
            "    return a + C['a'][0]\n"
        ),
    },
    "weak type": {
        "k": (
            "import jax.numpy as jnp\n"
            "C = jnp.asarray(2) if #V# == 1 else jnp.asarray(2, jnp.int32)\n"
            "def f(a):\n"
            "    return a + C\n"
        ),
    },
    "numpy or jax": {
        "k": (
            "import jax.numpy as jnp, numpy as np\n"
            "C = (np if #V# == 1 else jnp).asarray([2.0], 'float32')\n"
            "def f(a):\n"
            "    return a + C @ C\n"
        ),
    },
    "private slots": {
        "k": (
            "class T:\n"
            "    __slots__ = ('a', '__c')\n"
            "    def __init__(self, c): self.a, self.__c = 0, c\n"
            "    def get(self): return self.__c\n"
            "t = T(#V#)\n"
            "def f(a):\n"
            "    return a + t.get()\n"
        ),
    },
    "object dunder attr": {
        "k": (
            "class T:\n"
            "    pass\n"
            "t = T()\n"
            "t.x, t.__c__ = 0, #V#\n"
            "def f(a):\n"
            "    return a + t.__c__\n"
        ),
    },
    "partial subclass": {
        "k": (
            "import functools\n"
            "class P(functools.partial):\n"
            "    def __call__(self, a): return a + #V#\n"
            "p = P(abs, 0)\n"
            "def f(a):\n"
            "    return p(a)\n"
        ),
    },
    "partial attribute": {
        "k": (
            "import functools\n"
            "p = functools.partial(abs, 0)\n"
            "p.c = #V#\n"
            "def f(a):\n"
            "    return a + p.c\n"
        ),
    },
    "module handed on": {
        "k": ("import k_near\ndef h(m, a): return m.g(a)\ndef f(a):\n    return h(k_near, a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "module returned": {
        "k": ("import k_near\ndef get(): return k_near\ndef f(a):\n    return get().g(a)\n"),
        "k_near": ("def g(a):\n    return a + #V#\n"),
    },
    "attrgetter": {
        "k": (
            "import operator, k_near\n"
            "def f(a):\n"
            "    k_near.x\n"
            "    return operator.attrgetter('g')(k_near)(a)\n"
        ),
        "k_near": ("x = 0\ndef g(a):\n    return a + #V#\n"),
    },
    "put into builtins": {
        "k": ("import builtins\nbuiltins.mine = #V#\ndef f(a):\n    return a + mine\n"),
    },
    "array put into a library": {
        "k": (
            "import math, numpy as np\n"
            "math.mine = np.array([#V#])\n"
            "def f(a):\n"
            "    return a + math.mine[0]\n"
        ),
    },
    "numpy's random numbers": {
        "k": (
            "import numpy as np\nnp.random.seed(#V#)\ndef f(a):\n    return a + np.random.rand()\n"
        ),
    },
    "Python's random numbers": {
        "k": ("import random\nrandom.seed(#V#)\ndef f(a):\n    return a + random.randrange(9)\n"),
    },
    "view of a dict": {
        "k": (
            "import numpy as np\n"
            "C = np.zeros(3000); C[1500] = #V#\n"
            "D = {'x': C}.values()\n"
            "def f(a):\n"
            "    return a + list(D)[0][1500]\n"
        ),
    },
    "method of a class from a text": {
        "k": (
            "exec('class T:\\n    def __init__(self):\\n        self.c = #V#')\n"
            "def f(a):\n"
            "    return a + T().c\n"
        ),
    },
    "enum private attr": {
        "k": (
            "import enum\n"
            "class E(enum.Enum):\n"
            "    A = 1\n"
            "E.A._c = #V#\n"
            "def f(a):\n"
            "    return a + E.A._c\n"
        ),
    },
    "dataclass metadata": {
        "k": (
            "import dataclasses\n"
            "@dataclasses.dataclass\n"
            "class D:\n"
            "    c: int = dataclasses.field(default=0, metadata={'s': #V#})\n"
            "def f(a):\n"
            "    return a + dataclasses.fields(D)[0].metadata['s']\n"
        ),
    },
    "dataclass methods": {
        "k": (
            "import dataclasses\n"
            "@dataclasses.dataclass(eq=(#V# == 1))\n"
            "class D:\n"
            "    c: int = 0\n"
            "def f(a):\n"
            "    return a + (D() == D())\n"
        ),
    },
    "other wrapper of a library": {
        "k": (
            "import jax\n"
            "def g(x): return 2.0 * x\n"
            "h = (jax.jacfwd if #V# == 1 else jax.jacrev)(g)\n"
            "def f(a):\n"
            "    return a + h(1.0)\n"
        ),
    },
    "property setter": {
        "k": (
            "class T:\n"
            "    @property\n"
            "    def c(self): return self._c\n"
            "    @c.setter\n"
            "    def c(self, value): self._c = value * #V#\n"
            "def f(a):\n"
            "    t = T(); t.c = 1\n"
            "    return a + t.c\n"
        ),
    },
    "environment": {
        "k": (
            "import os\n"
            "os.environ['SCALE'] = '#V#'\n"
            "def f(a):\n"
            "    return a + int(os.environ['SCALE'])\n"
        ),
    },
    "file": {
        "k": (
            "def f(a):\n    with open('number.txt') as file:\n        return a + int(file.read())\n"
        ),
    },
    "file by its path": {
        "k": (
            "import pathlib\n"
            "def f(a):\n"
            "    return a + int(pathlib.Path('number.txt').read_text())\n"
        ),
    },
}
NOT_CONTINUED = {"singledispatch", "np frompyfunc", "environment", "file", "file by its path"}
"""A registry of weak references, a function inside numpy's, and what is read when a learner runs, which nobody can
compare: such a learner always runs anew."""


def program(folder, kind, number, layout=str):
    """The program of the learner with this number, from files of its own."""
    for name, text in REACHED[kind].items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(layout(text.replace("#V#", str(number))))
    before, path = dict(sys.modules), list(sys.path)
    for name in REACHED[kind]:
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return program_of(importlib.import_module("k").f)
    finally:
        sys.path[:] = path
        sys.modules.clear()
        sys.modules.update(before)


def with_comments(text):
    return "# a comment\n\n" + text.replace("\n    return", "  # here\n\n    return  ")


@pytest.mark.parametrize("kind", REACHED)
def test_an_edit_is_another_program(kind, tmp_path):
    one = program(tmp_path / "one", kind, 1)
    two = program(tmp_path / "two", kind, 2)
    assert one.digest != two.digest
    assert two.changes(one.parts)


@pytest.mark.parametrize("kind", sorted(set(REACHED) - NOT_CONTINUED))
def test_comments_and_another_look_are_none(kind, tmp_path):
    one = program(tmp_path / "one", kind, 1)
    assert program(tmp_path / "two", kind, 1, with_comments) == one


def test_what_is_too_deep_to_follow_is_not_continued(tmp_path):
    """And no error: the learner may be right."""
    chain = "".join(f"def g{i}(a):\n    return g{i + 1}(a)\n" for i in range(400))
    REACHED["chain"] = {"k": chain + "def g400(a):\n    return a\ndef f(a):\n    return g0(a)\n"}
    assert program(tmp_path, "chain", 1).digest != program(tmp_path, "chain", 1).digest


@pytest.mark.parametrize(
    "text",
    [
        "import logging\nlogging.basicConfig()\nlog = logging.getLogger('x')\ndef f(a):\n    log.info(a)\n",
        "from scipy.special import expit\ndef f(a):\n    return expit(a)\n",
        "import os, sys, time\ndef f(a):\n    time.time(), os.path.join('a'), print(a, file=sys.stderr)\n",
        "import re\nwords = re.compile('a|b')\ndef f(a):\n    return words.match(a)\n",
        'exec(\'def f(a):\\n    return a in {"x", "y", "z"}\')\n',
        "def f(a):\n    import k_broken\n",
    ],
    ids=["logger", "ufunc", "clock", "pattern", "set", "broken module"],
)
def test_what_changes_no_number_does_not_keep_a_learner_from_going_on(text, tmp_path):
    REACHED["own"] = {"k": text, "k_broken": "raise RuntimeError('never needed')\n"}
    assert program(tmp_path / "one", "own", 1) == program(tmp_path / "two", "own", 1)


@pytest.mark.parametrize(
    "text",
    [
        "import jax.numpy as jnp\nc = jnp.zeros(3)\nc.delete()\ndef f(a):\n    return a + c\n",
        "class M(dict):\n    def items(self): raise KeyError('no')\nm = M()\ndef f(a):\n    return m\n",
    ],
    ids=["deleted array", "raising"],
)
def test_what_cannot_be_looked_at_is_not_continued_and_no_error(text, tmp_path):
    REACHED["own"] = {"k": text}
    one, two = (program(tmp_path, "own", 1) for _ in range(2))
    assert one.digest != two.digest
    assert "cannot be compared between two runs" in two.changes(one.parts)[0]
