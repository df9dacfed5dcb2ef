#include "decoder/symbols/unwinder.h"

#include <elfutils/libdwfl.h>
#include <string.h>
#include <sys/mman.h>

#include <set>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/code/vdso.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

// There is one thread at a time; its number is of no importance.
constexpr pid_t kThread = 1;

// All files are named when they are reported.
int find_no_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

// Unwinding tables are loaded with the code; nothing else is looked for.
int find_no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                       GElf_Word, char**) {
  return -1;
}

constexpr Dwfl_Callbacks kFiles = {find_no_file, find_no_debug_file, nullptr, nullptr};

void report_files(Dwfl* dwfl, const std::vector<Mapping>& mappings) {
  std::set<std::string> seen;
  for (const Mapping& mapping : mappings) {
    // Under qemu no mapping says that it is executable.
    if (!mapping.has_file() || mapping.path.starts_with("/dev/")) continue;
    if (!seen.insert(mapping.file()).second) continue;
    auto file = ElfFile::open(mapping.file());
    auto bias = file ? load_bias(file->segments(), mappings, mapping) : std::nullopt;
    if (!bias) continue;
    const char* path = mapping.file().c_str();
    dwfl_report_elf(dwfl, path, path, -1, *bias, true);
  }
}

// No file has it, but the library wants one.
void report_vdso(Dwfl* dwfl, std::string_view maps, const Unwinder::ReadMemory& read) {
  const auto vdso = vdso_in(maps);
  if (!vdso) return;
  Bytes image(vdso->second - vdso->first);
  if (read(vdso->first, image) != image.size()) return;
  const std::string name(kVdsoName);
  UniqueFd file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file || !write_all(file.get(), image, name)) return;
  // The image's addresses begin at 0. Takes the file, unless it fails.
  if (dwfl_report_elf(dwfl, name.c_str(), name.c_str(), file.get(), vdso->first.value, true))
    file.release();
}

}  // namespace

struct Unwinder::State {
  explicit State(ReadMemory memory) : read(std::move(memory)) {}

  struct EndDwfl {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };

  static State& of(void* argument) { return *static_cast<State*>(argument); }

  static pid_t next_thread(Dwfl*, void* argument, void** thread_argument) {
    if (*thread_argument != nullptr) return 0;
    *thread_argument = argument;
    return kThread;
  }
  static bool get_thread(Dwfl*, pid_t tid, void* argument, void** thread_argument) {
    *thread_argument = argument;
    return tid == kThread;
  }
  static bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* argument) {
    std::array<std::uint8_t, sizeof(Dwarf_Word)> bytes{};
    if (of(argument).read({address}, bytes) != bytes.size()) return false;
    ::memcpy(word, bytes.data(), bytes.size());
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* argument) {
    const StackRegisters& r = of(argument).registers;
    return dwfl_thread_state_registers(thread, 0, r.values.size(), r.values.data());
  }
  static int add_frame(Dwfl_Frame* frame, void* argument) {
    Dwarf_Addr pc = 0;
    std::vector<Address>& found = of(argument).found;
    if (!dwfl_frame_pc(frame, &pc, nullptr) || pc == 0 || found.size() == kMaxFrames)
      return DWARF_CB_ABORT;
    found.push_back({pc});
    return DWARF_CB_OK;
  }

  ReadMemory read;
  std::unique_ptr<Dwfl, EndDwfl> dwfl;
  StackRegisters registers;
  std::vector<Address> found;
};

Unwinder::Unwinder(std::string_view maps, ReadMemory read, std::int32_t pid)
    : state_(std::make_unique<State>(std::move(read))) {
  static constexpr Dwfl_Thread_Callbacks kThreads = {
      State::next_thread,   State::get_thread, State::read_word,
      State::set_registers, nullptr,           nullptr};
  state_->dwfl.reset(dwfl_begin(&kFiles));
  if (state_->dwfl == nullptr) return;
  dwfl_report_begin(state_->dwfl.get());
  report_files(state_->dwfl.get(), mappings_of(pid, maps));
  report_vdso(state_->dwfl.get(), maps, state_->read);
  dwfl_report_end(state_->dwfl.get(), nullptr, nullptr);
  if (!dwfl_attach_state(state_->dwfl.get(), nullptr, kThread, &kThreads, state_.get()))
    state_->dwfl.reset();
}

Unwinder::~Unwinder() = default;

std::vector<Address> Unwinder::stack(const StackRegisters& registers) {
  state_->registers = registers;
  state_->found.clear();
  if (state_->dwfl != nullptr)
    dwfl_getthread_frames(state_->dwfl.get(), kThread, State::add_frame, state_.get());
  const Address stands{registers.values[StackRegisters::kInstructionPointer]};
  if (state_->found.empty()) state_->found.push_back(stands);
  return std::move(state_->found);
}

}  // namespace tailtrace
