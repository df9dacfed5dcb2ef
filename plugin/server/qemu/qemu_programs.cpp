#include "plugin/server/qemu/qemu_programs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace tailtrace {

namespace {

UniqueFd open_stdio(const std::string& path, bool reads) {
  int flags = (reads ? O_RDONLY : O_WRONLY | O_CREAT) | O_NOCTTY | O_CLOEXEC;
  UniqueFd file(::open(path.c_str(), flags, 0640));
  return file ? std::move(file) : UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

}  // namespace

QemuPrograms::QemuPrograms(const ServeOptions& options, bool inferior_owns_stdio,
                           const EndSignals& signals)
    : options_(options), inferior_owns_stdio_(inferior_owns_stdio), signals_(signals) {}

Result<QemuInferior*> QemuPrograms::launch(const std::vector<std::string>& program) {
  QemuOptions qemu;
  qemu.program = program;
  qemu.ring_records = options_.ring_records;
  qemu.with_stub = true;
  qemu.own_group = true;
  qemu.qemu = options_.qemu;
  qemu.folder = folder_;
  if (!options_.keep_folder.empty()) {
    // One folder for each program: the first has the name that was asked for.
    qemu.kept_session = options_.keep_folder;
    if (launched_ != 0) qemu.kept_session += fmt::format(".{}", launched_ + 1);
  }
  UniqueFd null;
  if (options_.program_stdio) {
    qemu.stdio = *options_.program_stdio;
  } else if (!inferior_owns_stdio_) {
    // As gdbserver has it when stdin and stdout carry the protocol.
    null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    qemu.stdio = {null.get(), STDERR_FILENO, STDERR_FILENO};
  }
  std::array<UniqueFd, 3> files;
  for (std::size_t fd = 0; fd < files.size(); ++fd) {
    if (stdio_paths_[fd].empty()) continue;
    files[fd] = open_stdio(stdio_paths_[fd], fd == 0);
    qemu.stdio[fd] = files[fd].get();
  }
  if (!environment_.empty()) qemu.environment = environment();
  auto inferior = QemuInferior::launch(qemu, signals_);
  if (!inferior) return fail(std::move(inferior.error()));
  ++launched_;
  std::int32_t pid = (*inferior)->pid();
  if (inferior_owns_stdio_ && !options_.program_stdio) terminal_.lend_to(pid);
  return (all_[pid] = std::move(*inferior)).get();
}

QemuInferior* QemuPrograms::find(std::int32_t pid) const {
  auto it = all_.find(pid);
  return it == all_.end() ? nullptr : it->second.get();
}

void QemuPrograms::remove(std::int32_t pid) { all_.erase(pid); }

void QemuPrograms::set_variable(const std::string& name, std::optional<std::string> value) {
  environment_[name] = std::move(value);
}

std::vector<std::string> QemuPrograms::environment() const {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (!environment_.contains(std::string(text.substr(0, text.find('=')))))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : environment_)
    if (value) result.push_back(name + "=" + *value);
  return result;
}

Result<Engine*> QemuPrograms::engine_of(ThreadId thread) const {
  QemuInferior* inferior = find(thread.pid);
  if (inferior == nullptr)
    return fail(ErrorCode::kGone, fmt::format("process {} is gone", thread.pid));
  return &inferior->engine();
}

Result<void> QemuPrograms::start(ThreadId thread) {
  auto engine = engine_of(thread);
  return engine ? (*engine)->start(thread) : fail(std::move(engine.error()));
}

Result<void> QemuPrograms::stop(ThreadId thread) {
  auto engine = engine_of(thread);
  return engine ? (*engine)->stop(thread) : fail(std::move(engine.error()));
}

bool QemuPrograms::is_recording(ThreadId thread) const {
  auto engine = engine_of(thread);
  return engine && (*engine)->is_recording(thread);
}

bool QemuPrograms::was_born_recorded(ThreadId thread) const {
  auto engine = engine_of(thread);
  return engine && (*engine)->was_born_recorded(thread);
}

void QemuPrograms::set_thread_room(std::int32_t pid, std::optional<std::uint64_t> threads) {
  if (QemuInferior* inferior = find(pid)) inferior->engine().set_thread_room(pid, threads);
}

Result<Position> QemuPrograms::head(ThreadId thread) const {
  auto engine = engine_of(thread);
  return engine ? (*engine)->head(thread) : fail(std::move(engine.error()));
}

Result<ThreadSnapshot> QemuPrograms::snapshot(ThreadId thread, const Stop& stop,
                                              std::uint64_t limit) {
  auto engine = engine_of(thread);
  return engine ? (*engine)->snapshot(thread, stop, limit) : fail(std::move(engine.error()));
}

}  // namespace tailtrace
