// The command line that runs a program under qemu with our plugin, and how it is started.
//
// Threading: values.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

struct QemuOptions;

// What helps those for whom qemu does not work.
constexpr char kWithoutQemu[] = "--engine=step (works without it, slower)";

struct QemuCommand {
  std::vector<std::string> arguments;    // argv; the first is qemu's path
  std::vector<std::string> environment;  // "NAME=VALUE"

  // Starts it with the descriptors, the folder and the group of the options. It has `inherited`,
  // one of our descriptors, under the same number. The process number. Errors: kSystem.
  Result<int> start(const QemuOptions& options, int inherited = -1) const;
};

// Errors: as find_program(), find_qemu(), find_qemu_plugin().
Result<QemuCommand> make_qemu_command(const QemuOptions& options, const std::string& session);

// The stub's socket in the session folder, for a process that executed so many programs before.
std::string stub_name(unsigned program_index);

// Asks qemu to load the plugin and do nothing else: what it says about that, one line.
std::string what_qemu_says(const QemuOptions& options);

}  // namespace tailtrace
