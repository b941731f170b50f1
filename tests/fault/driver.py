"""No driver, a broken driver, and a driver whose calls fail one by one (failing_icd.c): always exit
status 2 with one sentence that names the call, or a right result where smg can do without."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SOURCE, VULKAN, Report, folder, has_device, smg, write

work = folder("fault-driver")
report = Report()
graph = f"{SOURCE}/tests/graphs/layernorm.smg"
words = ["run", graph, "--dim", "rows=3", "--check", "--repeat", "1", "--no-calibrate"]
environment = {"SMG_DEVICE": None, "MESA_SHADER_CACHE_DISABLE": "true"}
LOST, HOST_MEMORY, DEVICE_MEMORY, INITIALIZATION = -4, -1, -2, -3

# What fails, with what; words of the sentence. None: smg can do without it.
calls = [
    ("vkCreateInstance", INITIALIZATION, "vkCreateInstance"),
    ("vkEnumeratePhysicalDevices", INITIALIZATION, "vkEnumeratePhysicalDevices"),
    ("vkEnumerateDeviceExtensionProperties", HOST_MEMORY, "vk"),
    ("vkCreateDevice", INITIALIZATION, "vkCreateDevice"),
    ("vkCreateDevice", LOST, "VK_ERROR_DEVICE_LOST"),
    ("vkCreateDevice", HOST_MEMORY, "OUT_OF_HOST_MEMORY"),
    ("vkCreateCommandPool", HOST_MEMORY, "vkCreateCommandPool"),
    ("vkCreatePipelineCache", HOST_MEMORY, None),
    ("vkGetPipelineCacheData", HOST_MEMORY, None),
    ("vkCreateShaderModule", HOST_MEMORY, "vkCreateShaderModule"),
    ("vkCreateDescriptorSetLayout", HOST_MEMORY, "vkCreateDescriptorSetLayout"),
    ("vkCreatePipelineLayout", HOST_MEMORY, "vkCreatePipelineLayout"),
    ("vkCreateComputePipelines", INITIALIZATION, "vkCreateComputePipelines"),
    ("vkCreateComputePipelines", DEVICE_MEMORY, "OUT_OF_DEVICE_MEMORY"),
    ("vkCreateBuffer", HOST_MEMORY, "vkCreateBuffer"),
    ("vkAllocateMemory", DEVICE_MEMORY, "bytes"),
    ("vkBindBufferMemory", DEVICE_MEMORY, "vkBindBufferMemory"),
    ("vkMapMemory", -5, "vkMapMemory"),
    ("vkCreateDescriptorPool", DEVICE_MEMORY, "vkCreateDescriptorPool"),
    ("vkAllocateDescriptorSets", DEVICE_MEMORY, "vkAllocateDescriptorSets"),
    ("vkAllocateCommandBuffers", HOST_MEMORY, "vkAllocateCommandBuffers"),
    ("vkBeginCommandBuffer", HOST_MEMORY, "vkBeginCommandBuffer"),
    ("vkEndCommandBuffer", DEVICE_MEMORY, "vkEndCommandBuffer"),
    ("vkCreateFence", HOST_MEMORY, "vkCreateFence"),
    ("vkCreateQueryPool", DEVICE_MEMORY, "vkCreateQueryPool"),
    ("vkQueueSubmit", LOST, "vkQueueSubmit"),
    ("vkQueueSubmit", DEVICE_MEMORY, "vkQueueSubmit"),
    ("vkWaitForFences", LOST, "vkWaitForFences"),
    ("vkResetFences", DEVICE_MEMORY, "vkResetFences"),
    ("vkGetQueryPoolResults", LOST, "vkGetQueryPoolResults"),
]


def refused(what, *parts, **changes):
    report.refusal([what], smg(*what.split(), env={**environment, **changes}), *parts)


def real_driver():
    """The library behind the first manifest that the tests use."""
    manifests = os.environ.get("VK_DRIVER_FILES") or ":".join(glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"))
    with open(manifests.split(":")[0], encoding="utf-8") as file:
        return json.load(file)["ICD"]["library_path"]


def manifest(library):
    return write(f"{work}/icd.json", json.dumps({
        "file_format_version": "1.0.1", "ICD": {"library_path": library, "api_version": "1.3.0"}}))


def test_none():
    for driver in (f"{work}/missing.json", manifest("/nosuch/driver.so"), write(f"{work}/empty.json", "")):
        refused(f"run {graph}", "no Vulkan driver", VK_DRIVER_FILES=driver)
        refused("devices", "no Vulkan driver", VK_DRIVER_FILES=driver)
        refused("devices --json", "no Vulkan driver", VK_DRIVER_FILES=driver)
        refused(f"bench {graph}", "no Vulkan driver", VK_DRIVER_FILES=driver)
        refused(f"explain {graph} --device 0", "no Vulkan driver", VK_DRIVER_FILES=driver)
        for needs_none in (f"info {graph}", f"explain {graph} --target h200", f"run {graph} --interpret --dim rows=2"):
            done = smg(*needs_none.split(), env={**environment, "VK_DRIVER_FILES": driver})
            report.check(done.returncode == 0 and done.stderr == "", f"{needs_none}: {done.stderr}")


def test_calls():
    failing = os.path.join(os.environ["SMG_BINARY_DIR"], "tests", "failing_icd.so")
    changes = {**environment, "VK_DRIVER_FILES": manifest(failing), "SMG_REAL_DRIVER": real_driver()}
    done = smg(*words, env=changes)
    report.check(done.returncode == 0 and "PASS" in done.stdout, f"nothing fails: {done.stderr}")
    for call, result, part in calls:
        done = smg(*words, env={**changes, "SMG_FAIL_CALL": call, "SMG_FAIL_RESULT": str(result)})
        if part is None:
            report.check(done.returncode == 0 and "PASS" in done.stdout,
                         f"{call} = {result}: status {done.returncode}, {done.stderr}")
        else:
            report.refusal([call, str(result)], done, part)


if not has_device():
    print("skipped: no Vulkan device")
    sys.exit(1 if VULKAN and os.environ.get("SMG_REQUIRE_DEVICE") else 77)
test_none()
test_calls()
sys.exit(report.finish())
