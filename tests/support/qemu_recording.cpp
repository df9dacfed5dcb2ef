#include "tests/support/qemu_recording.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>

#include "decoder/code/code_reader.h"
#include "decoder/symbols/elf_file.h"
#include "plugin/engines/qemu/qemu_engine.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kProgramBase = 0x4000000000;
constexpr std::uint64_t kEverything = 1ull << 40;

Result<RecordedProcess> take(const std::string& path) {
  auto engine = QemuEngine::open(path);
  if (!engine) return fail(std::move(engine.error()));
  RecordedProcess process;
  process.folder = path;
  process.pid = (*engine)->folder().pid();
  process.program_index = (*engine)->folder().program_index();
  auto threads = (*engine)->threads();
  if (!threads) return fail(std::move(threads.error()));
  for (const auto& thread : *threads) {
    auto snapshot = (*engine)->last_snapshot(thread.thread, kEverything);
    if (!snapshot) return fail(std::move(snapshot.error()));
    process.threads.push_back({thread.state, std::move(*snapshot)});
  }
  return process;
}

}  // namespace

const std::vector<std::string> kTestEnvironment = {"LANG=C", "PATH=/usr/bin:/bin"};

std::string built_program(const std::string& name) {
  return std::string(TAILTRACE_BINARY_DIR) + "/tests/programs/" + name;
}

QemuOptions test_options(const std::vector<std::string>& program) {
  QemuOptions options;
  options.program = program;
  options.environment = kTestEnvironment;
  options.qemu_options = {"-seed", "1"};
  return options;
}

Result<Recording> record_to_end(QemuOptions options) {
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.stdio = {nothing.get(), nothing.get(), 2};
  auto process = QemuProcess::launch(options);
  if (!process) return fail(std::move(process.error()));
  auto status = process->wait();
  if (!status) return fail(std::move(status.error()));
  auto folders = process_folders(process->session());
  if (!folders) return fail(std::move(folders.error()));
  Recording recording;
  recording.status = *status;
  for (const std::string& folder : *folders) {
    auto taken = take(folder);
    if (!taken) return fail(std::move(taken.error()));
    recording.processes.push_back(std::move(*taken));
  }
  return recording;
}

Result<SteppedAndRecorded> step_and_record(const std::vector<std::string>& program) {
  QemuOptions options = test_options(program);
  // One variable: qemu turns the order of several round each time.
  options.environment = {{"LANG=C"}};
  options.ring_records = 1 << 18;
  auto steps = step_under_qemu(program, *options.environment);
  if (!steps) return fail(std::move(steps.error()));
  auto recording = record_to_end(options);
  if (!recording) return fail(std::move(recording.error()));
  if (recording->status != steps->status)
    return fail(ErrorCode::kBadInput, "stepped and recorded, the program ended differently");
  return SteppedAndRecorded{std::move(*steps), std::move(*recording)};
}

Addresses without_iterations(const Addresses& steps, const CodeImage& code) {
  CodeReader reader(code);
  Addresses result;
  for (std::uint64_t at : steps) {
    bool repeats = false;
    if (!result.empty() && result.back() == at) {
      auto insn = reader.at({at});
      repeats = insn && insn->kind == InstructionClass::kRepString;
    }
    if (!repeats) result.push_back(at);
  }
  return result;
}

testing::AssertionResult is_equal(const Addresses& history, const Addresses& truth) {
  if (history == truth) return testing::AssertionSuccess();
  auto n = static_cast<std::ptrdiff_t>(std::min(history.size(), truth.size()));
  auto differ = std::mismatch(history.begin(), history.begin() + n, truth.begin()).first;
  auto i = static_cast<std::size_t>(differ - history.begin());
  auto around = [&](const Addresses& list) {
    std::string text;
    for (std::size_t k = i < 4 ? 0 : i - 4; k < std::min(i + 4, list.size()); ++k)
      text += fmt::format("{}{:#x}", k == i ? " >" : " ", list[k]);
    return text;
  };
  return testing::AssertionFailure()
         << "they differ at " << i << "; history (" << history.size() << "):" << around(history)
         << "; truth (" << truth.size() << "):" << around(truth);
}

Result<std::uint64_t> address_of(const std::string& program, const std::string& function) {
  Result<ElfFile> file = ElfFile::open(program);
  if (!file) return fail(std::move(file.error()));
  for (const ElfSymbol& symbol : file->symbols())
    if (symbol.name == function) return kProgramBase + symbol.value;
  return fail(ErrorCode::kBadInput, "no function " + function + " in " + program);
}

}  // namespace tailtrace
