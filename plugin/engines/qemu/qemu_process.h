// QemuProcess: a program started under qemu-x86_64 with our plugin, and the session folder that
// its recording goes to.
//
// The program inherits our descriptors 0, 1 and 2 or gets others; its process number is qemu's. It
// ends with us, whatever ends us, unless it was let go of.
//
// Threading: one thread at a time. The process is our child: nobody else may wait for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "plugin/engines/qemu/leash.h"
#include "plugin/engines/qemu/session_folder.h"

namespace tailtrace {

struct QemuOptions {
  std::vector<std::string> program;                     // argv; found as a shell finds it
  std::optional<std::vector<std::string>> environment;  // "NAME=VALUE"; ours if not given
  std::array<int, 3> stdio{0, 1, 2};                    // become the program's 0, 1 and 2
  std::uint64_t ring_records = 1ull << 16;              // per thread; a power of two
  // In a process group of its own, with all signals as a program expects them.
  bool own_group = false;
  std::string folder;        // that the program begins in; empty: ours
  bool with_stub = false;    // stop before the first instruction and wait for a debugger
  std::string kept_session;  // a new folder to be left behind; empty: as the two around it say
  std::string sessions;      // where the session folder is made; see make_session_folder
  std::string qemu;          // name or path; default $TAILTRACE_QEMU, else qemu-x86_64
  std::vector<std::string> qemu_options;  // more of qemu's own, such as {"-seed", "1"}
};

class QemuProcess {
 public:
  // Returns when the recorder is at work. Errors: as find_program(); kNoEngine when qemu or the
  // plugin is missing or they do not fit each other; kUsage for a ring size; kSystem.
  static Result<QemuProcess> launch(const QemuOptions& options);

  QemuProcess(QemuProcess&&) noexcept;
  QemuProcess& operator=(QemuProcess&&) noexcept;
  // Kills the process if it is still there, and removes the session folder unless it is kept.
  ~QemuProcess();

  int pid() const { return pid_; }
  const std::string& session() const { return session_.path(); }
  // The folder of the program that the process executes now, for QemuEngine::open.
  std::string process_folder() const;

  // Connects to qemu's stub: once for each program that the process executes. A program that
  // executes another ends its connection without a word; see replaced().
  // Errors: kGone when the process ended instead; kUsage when it has no stub.
  Result<UniqueFd> connect_stub();

  // After the stub's connection has ended: true when the process executes another program now,
  // which waits for a debugger; process_folder() and connect_stub() are the new program's then.
  Result<bool> replaced();

  // The process goes on by itself, and so does its recording until the session folder is removed;
  // only what is being written stays. Nobody waits for it any more.
  void let_go();

  // Becomes readable when the process ends.
  int end_fd() const { return pidfd_.get(); }
  // The process's wait status once it has ended; nothing while it runs.
  Result<std::optional<int>> try_wait();
  // Waits for the end; the wait status.
  Result<int> wait();

 private:
  explicit QemuProcess(OwnFolder session) : session_(std::move(session)) {}

  Result<void> spawn(const QemuOptions& options);
  Result<void> wait_for(const std::string& name);
  Error early_end(const QemuOptions& options);

  OwnFolder session_;
  int pid_ = 0;
  UniqueFd pidfd_;
  Leash leash_;
  UniqueFd inotify_;
  unsigned program_index_ = 0;
  bool with_stub_ = false;
  std::optional<int> status_;
};

// qemu-x86_64 as `name` (or by default) finds it. Errors: kNoEngine with the fix.
Result<std::string> find_qemu(const std::string& name);

// The plugin's file: $TAILTRACE_QEMU_PLUGIN, else beside this program or library, in the build
// tree, or where it is installed. Errors: kNoEngine.
Result<std::string> find_qemu_plugin();

}  // namespace tailtrace
