"""The C examples of README.md and docs/embedding.md are compiled and run as they stand: the five lines of each inside a
main with their declarations and a small model, or a bundle of it, in place of the named one, the complete one alone."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SOURCE, VULKAN, Report, folder, has_device, read, smg, write

work = folder("meta-examples")
report = Report()

BUNDLE = f"{work}/model.smgb"
AROUND_BUNDLE = """#include <smg/rt.h>
#include <stdint.h>
#include <stdio.h>
int main(void) {
    static int32_t ids[] = {2, 7, 9, 3, 5};
    const char *folder = NULL;
    smg_tensor in[] = {{.name = "input_ids", .rank = 2, .dims = {1, 5}, .data = ids}}, out = {.name = "last_hidden_state"};
    smg_context *ctx;
    smg_model *model;
    %s
    smg_context_destroy(ctx);
    return 0;
}
"""
AROUND = """#include <smg/smg.h>
#include <stdint.h>
#include <stdio.h>
int main(void) {
    static int32_t ids[] = {2, 7, 9, 3}, ones[] = {1, 1, 1, 1}, zeros[4];
    smg_tensor in[] = {{"input_ids", "i32", 2, {1, 4}, ids, 0, NULL},
                       {"attention_mask", "i32", 2, {1, 4}, ones, 0, NULL},
                       {"token_type_ids", "i32", 2, {1, 4}, zeros, 0, NULL}};
    smg_tensor out = {.name = "last_hidden_state"};
    smg_context *ctx;
    smg_model *model;
    %s
    return out.data == NULL;
}
"""


def run(name, text):
    """Compiles with warnings as errors, runs, gives what it prints."""
    binary, library = f"{work}/{name}", os.environ["SMG_BINARY_DIR"]
    source = write(f"{binary}.c", text)
    command = [os.environ["CC"], "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{SOURCE}/include",
               source, "-o", binary, f"-L{library}", "-lsmg", f"-Wl,-rpath,{library}"]
    if os.environ.get("SMG_SANITIZE"):
        command.append("-fsanitize=" + os.environ["SMG_SANITIZE"])
    made = subprocess.run(command, capture_output=True, text=True)
    report.check(made.returncode == 0, f"{name} does not compile:\n{made.stderr}")
    if made.returncode != 0 or not has_device():
        return None
    done = subprocess.run([binary], cwd=SOURCE, capture_output=True, text=True)
    report.check(done.returncode == 0 and done.stderr == "", f"{name}: status {done.returncode}, {done.stderr}")
    return done.stdout


blocks = re.findall(r"```c\n(.*?)```", read(f"{SOURCE}/README.md").decode(), re.S)
fragments = [block for block in blocks if "main(" not in block]
programs = [block for block in blocks if "main(" in block]
report.check(len(fragments) == 1 and len(programs) == 1, "README.md has not one fragment and one program in C")
if has_device() or not VULKAN or not os.environ.get("SMG_REQUIRE_DEVICE"):
    lines = [line for line in fragments[0].splitlines() if line.strip()]
    report.check(len(lines) == 5, f"the five-line path has {len(lines)} lines")
    printed = run("fragment", AROUND % fragments[0].replace("all-MiniLM-L6-v2", "tests/models/hf-bert-tiny"))
    report.check(printed is None or re.fullmatch(r"-?\d\S*\n", printed), f"the five lines print {printed!r}")
    lines = re.findall(r"```c\n(.*?)```", read(f"{SOURCE}/docs/embedding.md").decode(), re.S)
    report.check(len(lines) == 1 and lines[0].count("\n") == 5, "docs/embedding.md has not five lines in C")
    if has_device():
        made = smg("compile", f"{SOURCE}/tests/models/hf-bert-tiny", "-o", BUNDLE)
        report.check(made.returncode == 0, f"smg compile: {made.stderr}")
    printed = run("bundle", AROUND_BUNDLE % lines[0].replace("model.smgb", BUNDLE))
    report.check(printed is None or re.fullmatch(r"-?\d\S*\n", printed), f"the five lines of a bundle print {printed!r}")
    printed = run("program", programs[0])
    promised = re.search(r"printf\((.*)=.*/\* (\S+) \*/", programs[0])
    report.check(promised is not None, "the program does not say what it prints")
    report.check(printed is None or promised is None or printed.endswith(f"= {promised[2]}\n"),
                 f"the program prints {printed!r}")
else:
    report.check(False, "there is no device")
sys.exit(report.finish())
