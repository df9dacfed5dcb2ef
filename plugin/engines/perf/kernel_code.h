// KernelCode: the code of the running kernel and of its modules, as it is in memory. A kernel
// patches itself when it starts and while it runs, so its file does not have the code that runs;
// /proc/kcore has.
//
// Code that the kernel makes at run time (eBPF, trampolines of tracing) is not found so.
//
// Threading: pure functions; they read /proc.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/code/code_image.h"

namespace tailtrace::perf {

struct KernelSection {
  std::string name;  // "kernel", or the module's
  Address address;
  Bytes code;
};

// The kernel first. `root` is put in front of /proc. Errors: kPermission, kSystem: /proc/kallsyms
// does not show where the kernel lies, or /proc/kcore cannot be read; kBadInput: one of them is not
// what it should be.
Result<std::vector<KernelSection>> read_kernel_code(const std::string& root);

// An image of those sections, of epoch 0.
Result<CodeImage> image_of(std::vector<KernelSection> sections);

}  // namespace tailtrace::perf
