"""Hostile and broken notebooks, each by the name of what it tries."""

HONEST = """
import numpy as np

def spread(x):
    return x.max() - x.min()

def squares(x):
    return sum(float(v) ** 2 for v in x)

def total(x):
    s = 0.0
    for v in x:
        s += v
    return s
"""
ZERO = "def spread(x): return 0.5\ndef squares(x): return -1.0\ndef total(x): return 'nothing'\n"

# On scores: none of these may earn a point.
ON_SCORES = {
    "empty": ["def spread(x):\n    raise NotImplementedError", "x = 1"],
    "hidden tests from files": [
        """
import os
found = []
for folder in ("/home", "/tmp", "/scratch", "/etc", "/root", "/opt", "/var", "/srv", "/work"):
    for where, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if name != "site-packages"]  # public
        for name in files:
            try:
                text = open(os.path.join(where, name), "rb").read(10**6)
            except OSError:
                continue
            if b"SECRET-MARKER" in text or name in ("checks.py", "gradebook.db", "secret"):
                found.append(os.path.join(where, name))
for process in os.listdir("/proc"):
    for name in ("environ", "cmdline"):
        try:
            text = open(f"/proc/{process}/{name}", "rb").read()
        except OSError:
            continue
        if b"checks.py" in text or b"instructor" in text:
            found.append(process)
print("LEAK" if found else "HELD", found)
""",
        ZERO,
    ],
    "capture as cells run": [
        "seen = []\nget_ipython().events.register('pre_run_cell', seen.append)",
        ZERO,
    ],
    "patched numpy.testing": [
        "import numpy as np\n"
        "np.testing.assert_allclose = np.testing.assert_equal = lambda *a, **k: None\n"
        "np.allclose = np.isclose = lambda *a, **k: True",
        ZERO,
    ],
    "shadowed range": ["import builtins\nbuiltins.range = range = lambda *a: []", ZERO],
    "input transformer": [
        "get_ipython().input_transformers_cleanup.append(lambda lines: [])\n" + ZERO
    ],
    "stripped asserts": [
        "import ast\nget_ipython().ast_transformers.append(ast.NodeTransformer())\n" + ZERO
    ],
    "replaced reference": [
        "import sys\nfor m in list(sys.modules.values()):\n"
        "    for n in ('compare', 'reference', 'spread', 'squares', 'total'):\n"
        "        try: setattr(m, n, lambda *a: True)\n"
        "        except Exception: pass\n",
        ZERO,
    ],
    "equal to everything": [
        "class Any(float):\n"
        "    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0.0\n"
        "    __rsub__ = __sub__\n"
        "    def __abs__(self): return 0.0\n"
        "def spread(x): return Any(0.5)\n"
        "class All:\n"
        "    def __eq__(self, other): return True\n"
        "def squares(x): return All()\n"
        "def total(x): return [All()]\n"
    ],
    "fake numpy": [
        "import sys, types\nfake = types.ModuleType('numpy')\n"
        "fake.float64 = float\nfake.allclose = lambda *a, **k: True\n"
        "sys.modules['numpy'] = fake\n" + ZERO
    ],
    "trigger in the gradebook": [
        "import glob, sqlite3\n"
        "for path in glob.glob('/**/gradebook.db', recursive=True):\n"
        "    sqlite3.connect(path).execute('CREATE TRIGGER t AFTER INSERT ON grade BEGIN "
        "UPDATE grade SET auto_score = 100; END')\n"
        "    print('LEAK')\n",
        ZERO,
    ],
    "forged print": [
        'print(\'{"value": 0.0, "intact": true}\')\n'
        "import os\n"
        "for fd in range(3, 40):\n"
        '    try: os.write(fd, b\'{"passed": true, "points": 100}\\n\')\n'
        "    except OSError: pass\n",
        ZERO,
    ],
    "SystemExit": ["def spread(x): raise SystemExit(0)\ndef squares(x): exit()\ntotal = spread"],
    "traceback off": ["import sys\nsys.tracebacklimit = 0\nsys.excepthook = print\n" + ZERO],
    "NaN": ["def spread(x): return float('nan')\nsquares = total = spread"],
    "bool": ["def spread(x): return True\nsquares = total = spread"],
    "deep JSON": [
        "def spread(x):\n    v = []\n    for _ in range(10**5): v = [v]\n    return v\n"
        "squares = total = spread"
    ],
    "100 MB reply": ["def spread(x): return 'x' * 10**8\nsquares = total = spread"],
    "not JSON": [
        "import os\n"
        "def spread(x):\n"
        "    for fd in range(3, 40):\n"
        "        try: os.write(fd, b'points: all of them\\n')\n"
        "        except OSError: pass\n"
        "squares = total = spread"
    ],
}

# On the machine: the honest answers of the same notebook keep their points.
ON_MACHINE = {
    "50 GB": [
        "try:\n    x = bytearray(50 * 2**30)\n    print('LEAK')\nexcept MemoryError:\n"
        "    print('HELD')"
    ],
    "deletion": [
        "import os, shutil\n"
        "for name in os.listdir('/'):\n"
        "    shutil.rmtree('/' + name, ignore_errors=True)\n"
        "print('HELD' if os.path.exists('/usr/bin/env') else 'LEAK')"
    ],
    "writes outside": [
        "wrote = []\n"
        "for path in ('/x', '/usr/x', '/etc/x', '/dev/x', '/proc/sys/kernel/hostname', '/tmp/x'):\n"
        "    try:\n        open(path, 'w').write('x')\n        wrote.append(path)\n"
        "    except OSError: pass\n"
        "print('LEAK' if wrote else 'HELD', wrote)"
    ],
    "full disk": [
        "n = 0\n"
        "try:\n"
        "    for folder in ('/scratch', '/home/s', '/dev/shm'):\n"
        "        try:\n"
        "            for i in range(100):\n"
        "                with open(f'{folder}/{i}', 'wb') as f: n += f.write(bytes(2**24))\n"
        "        except OSError: pass\n"
        "finally:\n    print('HELD' if n < 4 * 10**8 else 'LEAK', n)"
    ],
    "network": [
        "import socket\nheld = 0\n"
        "for target in (('1.1.1.1', 53), ('127.0.0.1', 22), ('example.org', 80)):\n"
        "    try: socket.create_connection(target, 2)\n"
        "    except OSError: held += 1\n"
        "print('HELD' if held == 3 else 'LEAK')"
    ],
    "environment": [
        "import os\nlisted = set(os.environ) - {'HOME', 'PATH', 'LANG', 'TMPDIR', 'PWD',"
        " 'LC_CTYPE', 'LD_LIBRARY_PATH', 'PYTHONPATH', 'PYTHONDONTWRITEBYTECODE', 'MPLBACKEND',"
        " 'MPLCONFIGDIR',"
        " 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'}\nprint('LEAK' if listed else 'HELD', listed)"
    ],
    "forks": [
        "import os, time\nn = 0\n"
        "try:\n"
        "    for _ in range(200):\n"
        "        if os.fork() == 0:\n            time.sleep(600)\n            os._exit(0)\n"
        "        n += 1\n"
        "except OSError: pass\n"
        "print('HELD' if n < 64 else 'LEAK', n)"
    ],
    "other processes": [
        "import os\nothers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "print('HELD' if len(others) < 6 else 'LEAK', others)"
    ],
    "another namespace": [
        "import ctypes\nrc = ctypes.CDLL(None).unshare(0x10000000)\n"
        "print('LEAK' if rc == 0 else 'HELD')"
    ],
}

# What ends the runner: a human decides.
KILLED = {
    "os._exit": "import os\nos._exit(0)",
    "kill": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import ctypes\nctypes.string_at(0)",
    "500 MB output": "for _ in range(500): print('x' * 10**6)",
}
