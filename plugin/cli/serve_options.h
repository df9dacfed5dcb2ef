// The options of `tailtrace serve`: gdbserver's command line with ours added. Those that say how to
// record are shared with `tailtrace run`.
//
// Threading: values.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/cli/command.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

// What the user typed about recording; turned into ServeOptions once it is all known.
struct RecordingOptions {
  std::string engine = "auto";
  std::string ring;
  std::string handover;
  std::string since = "enable";
  std::string keep;
  std::string gdbserver, qemu;
};

// Whether --engine takes it.
bool is_engine(const std::string& name);

// Adds --engine, --ring, --handover, --since, --keep, --gdbserver and --qemu.
void add_recording_options(CLI::App& app, RecordingOptions& options);

// Errors: kUsage, for values that cannot be used.
Result<void> apply(const RecordingOptions& recording, ServeOptions& serve);

struct ServeWords {
  RecordingOptions recording;
  bool attach = false, multi = false, once = false;
  bool startup_with_shell = true, disable_randomization = true;
  bool allow_remote = false;
  bool wrapper = false;  // never set: take_wrapper has taken it
  bool debug = false, remote_debug = false, event_loop_debug = false;
  std::string debug_format, disable_packet;
};

// Options end at COMM: what follows the first word that is none is left over.
void add_serve_options(CLI::App& app, ServeWords& words);

// take_program of `serve`: the words of `--wrapper WORDS... --`, if it is there.
Result<std::vector<std::string>> take_wrapper(std::vector<std::string>& args);

// `rest` is COMM and what follows it. Errors: kUsage.
Result<ServeOptions> serve_options(const ServeWords& words, std::vector<std::string> wrapper,
                                   std::vector<std::string> rest);

}  // namespace tailtrace
