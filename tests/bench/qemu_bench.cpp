// What recording costs: real programs under qemu-user, without and with our plugin, in turns.
//
//   qemu_bench [ROUNDS]
//
// The machine, then two lines per program: the median processor time of both, their ratio, and how
// much was recorded in a second of it. Processor time, not time on the wall: others may use the
// machine.
//
// Branches: `taken` are the records; `not taken` are conditional branches that fell through, which
// records hold as well, as part of their straight runs. Their share is taken from samples of the
// ring while the program runs once more.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "decoder/code/code_reader.h"
#include "plugin/engines/qemu/qemu_command.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "tests/support/temp_folder.h"
#include "tests/support/usage.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kSampleRecords = 1 << 12;
constexpr int kSamplePeriod_ms = 20;

struct Program {
  std::string name;  // and its input
  std::vector<std::string> arguments;
};

template <class T>
T or_die(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().to_string());
  std::exit(1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// Processor time of a run.
double run(const QemuCommand& command) {
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  QemuOptions quiet;
  quiet.stdio = {nothing.get(), nothing.get(), nothing.get()};
  int pid = or_die(command.start(quiet));
  int status = 0;
  rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print(stderr, "the program failed\n");
    std::exit(1);
  }
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double run_plain(const Program& program) {
  QemuCommand command;
  command.arguments = {or_die(find_qemu(""))};
  command.arguments.insert(command.arguments.end(), program.arguments.begin(),
                           program.arguments.end());
  for (char** v = environ; *v != nullptr; ++v) command.environment.push_back(*v);
  return run(command);
}

// Processor time of a recorded run; `taken` is how many records it wrote.
double run_recorded(const Program& program, std::uint64_t& taken) {
  OwnFolder session = or_die(make_session_folder(""));
  QemuOptions options;
  options.program = program.arguments;
  double cpu_s = run(or_die(make_qemu_command(options, session.path())));
  taken = 0;
  for (const std::string& folder : or_die(process_folders(session.path()))) {
    auto engine = or_die(QemuEngine::open(folder));
    for (const auto& t : or_die(engine->threads())) taken += or_die(engine->head(t.thread)).value;
  }
  return cpu_s;
}

struct Sample {
  std::uint64_t taken = 0;
  std::uint64_t not_taken = 0;
};

void count(const ThreadSnapshot& snapshot, Sample& sample) {
  if (snapshot.records.empty()) return;
  CodeReader code(*snapshot.code);
  Epoch epoch = snapshot.first_epoch;
  Address at = snapshot.records.front().to;
  for (std::size_t i = 1; i < snapshot.records.size(); ++i) {
    const BranchRecord& record = snapshot.records[i];
    code.set_epoch(epoch);
    for (std::uint32_t n = 0; n < record.insns; ++n) {
      auto insn = code.at(at);
      if (!insn) break;
      bool is_end = n + 1 == record.insns;
      if (insn->kind == InstructionClass::kConditional && !is_end) ++sample.not_taken;
      at = insn->next();
    }
    if (record.kind == RecordKind::kCodeChange) ++epoch.value;
    at = record.to;
    ++sample.taken;
  }
}

// Not-taken branches per taken one, all through a run.
double not_taken_share(const Program& program) {
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  QemuOptions options;
  options.program = program.arguments;
  options.stdio = {nothing.get(), nothing.get(), nothing.get()};
  QemuProcess process = or_die(QemuProcess::launch(options));
  auto engine = or_die(QemuEngine::open(process.process_folder()));
  Sample sample;
  for (pollfd end{process.end_fd(), POLLIN, 0}; ::poll(&end, 1, kSamplePeriod_ms) == 0;)
    for (const auto& t : or_die(engine->threads()))
      if (auto snapshot = engine->last_snapshot(t.thread, kSampleRecords)) count(*snapshot, sample);
  return static_cast<double>(sample.not_taken) /
         static_cast<double>(std::max<std::uint64_t>(sample.taken, 1));
}

void measure(const Program& program, int rounds) {
  std::vector<double> plain, recorded;
  std::uint64_t taken = 0;
  for (int i = 0; i < rounds; ++i) {
    plain.push_back(run_plain(program));
    recorded.push_back(run_recorded(program, taken));
  }
  double plain_s = median(plain), recorded_s = median(recorded);
  double taken_m = static_cast<double>(taken) / 1e6;
  double not_taken_m = taken_m * not_taken_share(program);
  fmt::print("{}: {:.2f}x the time of plain qemu ({:.2f} s : {:.2f} s)\n", program.name,
             recorded_s / plain_s, recorded_s, plain_s);
  fmt::print("  {:.0f} M records, {:.0f} M/s; with the {:.0f} M branches not taken {:.0f} M/s\n",
             taken_m, taken_m / recorded_s, not_taken_m, (taken_m + not_taken_m) / recorded_s);
  std::fflush(stdout);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "a processor without a name";
}

// Text that neither repeats itself nor is random.
void write_text(const std::string& path, std::size_t size_bytes) {
  std::ofstream file(path);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < size_bytes; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    file << (i % 64 == 63 ? '\n' : static_cast<char>('a' + (state >> 59) % 26));
  }
}

}  // namespace
}  // namespace tailtrace

int main(int argc, char** argv) {
  using namespace tailtrace;
  if (shows_usage(argc, argv, "qemu_bench [ROUNDS]")) return 0;
  int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  TempFolder folder;
  write_text(folder.file("text"), 3'000'000);
  std::ofstream(folder.file("work.py")) << R"(
words = {}
for i in range(400000):
    words[i % 97] = words.get(i % 97, 0) + i * i % 13
print(sorted(words.values()), sum(len(str(i)) for i in range(200000)))
)";
  fmt::print("{}, {} processors, {}\n", processor(), ::sysconf(_SC_NPROCESSORS_ONLN),
             or_die(find_qemu("")));
  measure({"xz -1 of 3 MB of text", {"/usr/bin/xz", "-1", "-T1", "-c", folder.file("text")}},
          rounds);
  measure({"python3, sums and a dict", {"/usr/bin/python3", "-S", folder.file("work.py")}}, rounds);
  measure({"cmake --help-full", {"/usr/bin/cmake", "--help-full"}}, rounds);
  measure({"rounds, nothing but short branches",
           {TAILTRACE_BINARY_DIR "/tests/programs/rounds", "3000000"}},
          rounds);
  return 0;
}
