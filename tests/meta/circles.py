"""Files of a folder of src/ that need each other. A folder reads from the bottom up where there is no such circle:
each file calls what stands below it. KNOWN has the circles that are left, some of them the recursion of what they work
on; another one, or one that is gone, is a breach.

An arrow is a name: a function that one file defines and another one of the folder mentions. Names that several files
define (one for each system, say) lead nowhere.
"""
import os
import re
import sys

ROOT = os.environ.get("SMG_SOURCE_DIR", os.getcwd())
BLANK = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FUNCTION = re.compile(r"^(?!static\b)[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)

KNOWN = {
    "affine": {
        "affine_form.c affine_range.c affine_value.c",
    },
    "base": {
        "base_context.c base_memory.c",
        "base_size.c base_size_value.c",
    },
    "compile": {
        "compile.c compile_peaks.c",
    },
    "graph": {
        "graph_contract.c graph_eval.c",
    },
    "kernel": {
        "kernel_code.c kernel_matrix.c kernel_shape.c kernel_walk.c kernel_wide.c",
        "kernel_interpret.c kernel_interpret_tape.c",
        "kernel_verify.c kernel_verify_code.c kernel_verify_exchange.c kernel_verify_expr.c",
    },
    "lower": {
        "lower_bounds.c lower_needed.c",
        "lower_emit.c lower_read.c lower_repeat.c lower_value.c",
        "lower_share.c lower_structure.c lower_temporal.c lower_terms.c",
    },
    "onnx": {
        "onnx_missing.c onnx_read.c",
        "onnx_node.c onnx_table.c",
    },
    "plan": {
        "plan_anew.c plan_join.c plan_make.c plan_moves.c plan_split.c",
        "plan_count.c plan_price.c",
    },
    "program": {
        "program.c program_bind.c program_cross.c program_memory.c program_prepare.c program_record.c "
        "program_run.c program_slices.c program_state.c",
    },
    "runtime": {
        "runtime_flight.c runtime_inputs.c runtime_model.c runtime_run.c runtime_tensor.c",
    },
    "space": {
        "space_affine.c space_map.c",
    },
    "spirv": {
        "spirv.c spirv_cache.c",
    },
}


def arrows_of(texts):
    """{file: files that it needs}, of {file: C text}."""
    code = {name: BLANK.sub(" ", text) for name, text in texts.items()}
    homes = {}
    for name, text in code.items():
        for function in FUNCTION.findall(text):
            homes.setdefault(function, set()).add(name)
    home = {function: next(iter(names)) for function, names in homes.items() if len(names) == 1}
    return {name: {home[word] for word in set(re.findall(r"\w+", text)) if home.get(word, name) != name}
            for name, text in code.items()}


def reached(arrows, start):
    seen, rest = set(), [start]
    while rest:
        for name in arrows[rest.pop()]:
            if name not in seen:
                seen.add(name)
                rest.append(name)
    return seen


def circles_of(texts):
    """The sets of files that reach each other."""
    arrows = arrows_of(texts)
    reach = {name: reached(arrows, name) for name in arrows}
    return {frozenset(other for other in reach[name] if name in reach[other]) for name in arrows if name in reach[name]}


def selftest():
    texts = {"a.c": "int a(void)\n{ return b(1); }", "b.c": 'int b(int x) {\n    return x; /* a() */ }\nint c(void) { return a(); }',
             "d.c": "static int a(int x) { return b(x); }", "e.c": 'int e(void) { return log("d()"); }\nint f(void) { return 0; }',
             "g.c": "int f(void) { return e(); }"}
    return circles_of(texts) == {frozenset(("a.c", "b.c"))}


def words(circle):
    return " ".join(sorted(circle))


breaches = [] if selftest() else ["circles.py: its own small circle is not found, or another one"]
for folder in sorted(os.listdir(os.path.join(ROOT, "src"))):
    path = os.path.join(ROOT, "src", folder)
    if not os.path.isdir(path):
        continue
    texts = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".c"):
            with open(os.path.join(path, name), encoding="utf-8") as file:
                texts[name] = file.read()
    found = {words(circle) for circle in circles_of(texts)}
    known = set(KNOWN.get(folder, {}))
    breaches += [f"src/{folder}: a circle of files that need each other: {circle}" for circle in sorted(found - known)]
    breaches += [f"src/{folder}: no circle any more, KNOWN names it: {circle}" for circle in sorted(known - found)]
for line in breaches:
    print(line)
print(f"{len(breaches)} breaches")
sys.exit(1 if breaches else 0)
