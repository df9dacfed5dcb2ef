// QemuPrograms: all programs that run under qemu for one debugger, how new ones are started, and
// their histories as one engine.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/engines/engine.h"
#include "plugin/server/below/server_options.h"
#include "plugin/server/below/terminal_loan.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

class QemuPrograms final : public Engine {
 public:
  // `inferior_owns_stdio`: programs read and write our 0, 1 and 2; else they read nothing and write
  // to 2 only, unless the options say otherwise.
  QemuPrograms(const ServeOptions& options, bool inferior_owns_stdio, const EndSignals& signals);

  // Errors: as QemuInferior::launch.
  Result<QemuInferior*> launch(const std::vector<std::string>& program);
  // Null when there is none.
  QemuInferior* find(std::int32_t pid) const;
  const std::map<std::int32_t, std::unique_ptr<QemuInferior>>& all() const { return all_; }
  // Kills it if it is still there.
  void remove(std::int32_t pid);

  // What programs started from now on find. An empty value of a variable is one; none takes it
  // away.
  void set_variable(const std::string& name, std::optional<std::string> value);
  void reset_environment() { environment_.clear(); }
  void set_folder(std::string folder) { folder_ = std::move(folder); }
  // The file that is descriptor 0, 1 or 2; what cannot be opened is /dev/null.
  void set_stdio_path(std::size_t fd, std::string path) { stdio_paths_.at(fd) = std::move(path); }

  // As an Engine it is the sum of its programs'. A thread whose process is gone gives kGone.
  std::string_view name() const override { return "qemu"; }
  Result<void> start(ThreadId thread) override;
  Result<void> stop(ThreadId thread) override;
  bool is_recording(ThreadId thread) const override;
  bool was_born_recorded(ThreadId thread) const override;
  bool can_mark_stops() const override { return true; }
  bool tells_of_threads() const override { return true; }
  void set_thread_room(std::int32_t pid, std::optional<std::uint64_t> threads) override;
  Result<Position> head(ThreadId thread) const override;
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override;

 private:
  Result<Engine*> engine_of(ThreadId thread) const;
  std::vector<std::string> environment() const;

  const ServeOptions& options_;
  bool inferior_owns_stdio_;
  const EndSignals& signals_;
  TerminalLoan terminal_;
  std::map<std::int32_t, std::unique_ptr<QemuInferior>> all_;
  std::map<std::string, std::optional<std::string>> environment_;  // changes to ours
  std::string folder_;
  std::array<std::string, 3> stdio_paths_;
  unsigned launched_ = 0;
};

}  // namespace tailtrace
