#include "plugin/recorder/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/types.h"
#include "plugin/engines/step/memory_map.h"

namespace tailtrace {
namespace {

constexpr std::size_t kPiece_bytes = 64 << 10;
constexpr std::size_t kMaxSegments = PN_XNUM - 1;

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

void append_text(Bytes& bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.push_back(0);
}

void append_note(Bytes& notes, Elf64_Word type, ByteSpan contents) {
  append(notes, Elf64_Nhdr{5, static_cast<Elf64_Word>(contents.size()), type});
  append_text(notes, "CORE");
  notes.resize((notes.size() + 3) / 4 * 4);
  notes.insert(notes.end(), contents.begin(), contents.end());
  notes.resize((notes.size() + 3) / 4 * 4);
}

template <class T>
ByteSpan bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

void append_thread(Bytes& notes, Subject& subject, ThreadId thread, int signal) {
  auto registers = subject.registers(thread);
  if (!registers) return;
  elf_prstatus status{};
  status.pr_pid = thread.tid;
  status.pr_cursig = static_cast<short>(signal);
  status.pr_info.si_signo = signal;
  static_assert(sizeof status.pr_reg == sizeof *registers);
  std::memcpy(&status.pr_reg, &*registers, sizeof status.pr_reg);
  auto vectors = subject.vector_registers(thread);
  status.pr_fpvalid = vectors.has_value() ? 1 : 0;
  append_note(notes, NT_PRSTATUS, bytes_of(status));
  if (vectors) append_note(notes, NT_FPREGSET, bytes_of(*vectors));
}

void append_process(Bytes& notes, const CoreSettings& settings) {
  elf_prpsinfo info{};
  info.pr_sname = 'R';
  info.pr_pid = settings.first.pid;
  const std::string_view command = settings.command;
  std::string_view name = command.substr(0, command.find(' '));
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  std::memcpy(info.pr_fname, name.data(), std::min(name.size(), sizeof info.pr_fname - 1));
  std::memcpy(info.pr_psargs, settings.command.data(),
              std::min(settings.command.size(), sizeof info.pr_psargs - 1));
  append_note(notes, NT_PRPSINFO, bytes_of(info));
}

// NT_FILE: how many, the page size, then where each lies, then their names.
void append_files(Bytes& notes, const std::vector<MemoryRegion>& regions) {
  Bytes list, names;
  std::uint64_t count = 0;
  for (const MemoryRegion& region : regions) {
    if (!region.path.starts_with('/')) continue;
    ++count;
    append(list,
           std::array{region.begin.value, region.end.value, region.offset_bytes / kPage_bytes});
    append_text(names, region.path);
  }
  Bytes contents;
  append(contents, std::array{count, kPage_bytes});
  contents.insert(contents.end(), list.begin(), list.end());
  contents.insert(contents.end(), names.begin(), names.end());
  append_note(notes, NT_FILE, contents);
}

Bytes make_notes(Subject& subject, const CoreSettings& settings,
                 const std::vector<MemoryRegion>& regions) {
  Bytes notes;
  append_thread(notes, subject, settings.first, settings.signal);
  append_process(notes, settings);
  append_note(notes, NT_AUXV, subject.auxiliary_vector());
  append_files(notes, regions);
  for (ThreadId thread : subject.threads())
    if (thread != settings.first) append_thread(notes, subject, thread, 0);
  return notes;
}

// Whether the memory of a region is what its file has. A file that is gone has nothing.
bool is_as_in_file(Subject& subject, const MemoryRegion& region) {
  UniqueFd file(::open(region.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return false;
  Bytes memory(kPiece_bytes), backing(kPiece_bytes);
  for (std::uint64_t at = 0, size = region.end - region.begin; at < size; at += kPiece_bytes) {
    std::size_t wanted = std::min<std::uint64_t>(kPiece_bytes, size - at);
    std::size_t n = subject.read_memory(region.begin + at, std::span(memory).first(wanted));
    ssize_t there =
        ::pread(file.get(), backing.data(), n, static_cast<off_t>(region.offset_bytes + at));
    if (there < 0) return false;
    std::fill(backing.begin() + there, backing.end(), 0);
    if (!std::equal(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(n),
                    backing.begin()))
      return false;
  }
  return true;
}

// How much of a region is written: nothing of devices, the first page of files that are as they
// were.
std::uint64_t kept_bytes(Subject& subject, const MemoryRegion& region) {
  const std::uint64_t whole = region.end - region.begin;
  if (region.path == "[vvar]" || region.path == "[vsyscall]" || region.path.starts_with("/dev/"))
    return 0;
  std::array<std::uint8_t, 4> first{};
  if (subject.read_memory(region.begin, first) != first.size()) return 0;
  if (!region.path.starts_with('/')) return whole;
  if (region.shared) return 0;
  if (!is_as_in_file(subject, region)) return whole;
  return std::memcmp(first.data(), ELFMAG, SELFMAG) == 0 ? kPage_bytes : 0;
}

struct Plan {
  std::vector<Elf64_Phdr> segments;  // the first is the notes
  Bytes notes;
};

Plan make_plan(Subject& subject, const CoreSettings& settings) {
  MemoryMap map = MemoryMap::parse(subject.all_maps());
  std::vector<MemoryRegion> regions = map.regions();
  if (regions.size() > kMaxSegments - 1) regions.resize(kMaxSegments - 1);
  Plan plan;
  plan.notes = make_notes(subject, settings, regions);
  Elf64_Phdr notes{};
  notes.p_type = PT_NOTE;
  notes.p_offset = sizeof(Elf64_Ehdr) + (regions.size() + 1) * sizeof(Elf64_Phdr);
  notes.p_filesz = plan.notes.size();
  plan.segments.push_back(notes);
  std::uint64_t offset = notes.p_offset + notes.p_filesz;
  for (const MemoryRegion& region : regions) {
    offset = (offset + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | (region.writable ? PF_W : 0u) | (region.executable ? PF_X : 0u);
    segment.p_offset = offset;
    segment.p_vaddr = region.begin.value;
    segment.p_memsz = region.end - region.begin;
    segment.p_filesz = kept_bytes(subject, region);
    segment.p_align = kPage_bytes;
    offset += segment.p_filesz;
    plan.segments.push_back(segment);
  }
  return plan;
}

class Writer {
 public:
  Writer(int fd, const std::string& path) : fd_(fd), path_(path) {}

  Result<void> write(ByteSpan bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
      ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(system_error("cannot write " + path_));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
    return {};
  }

  // What cannot be read is a hole: it reads as zeros.
  Result<void> write_memory(Subject& subject, const Elf64_Phdr& segment) {
    Bytes piece(kPiece_bytes);
    for (std::uint64_t done = 0; done < segment.p_filesz;) {
      auto wanted = std::min<std::uint64_t>(piece.size(), segment.p_filesz - done);
      std::size_t n = subject.read_memory({segment.p_vaddr + done}, std::span(piece).first(wanted));
      bool is_blank = std::all_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n),
                                  [](std::uint8_t byte) { return byte == 0; });
      if (n != 0 && !is_blank)
        if (auto ok = write(ByteSpan(piece).first(n), segment.p_offset + done); !ok) return ok;
      done += n != 0 ? n : std::min(wanted, kPage_bytes);
    }
    return {};
  }

  Result<void> write_all(Subject& subject, const Plan& plan) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(plan.segments.size());
    if (auto ok = write(bytes_of(header), 0); !ok) return ok;
    ByteSpan table(reinterpret_cast<const std::uint8_t*>(plan.segments.data()),
                   plan.segments.size() * sizeof(Elf64_Phdr));
    if (auto ok = write(table, sizeof header); !ok) return ok;
    if (auto ok = write(plan.notes, plan.segments.front().p_offset); !ok) return ok;
    for (std::size_t i = 1; i < plan.segments.size(); ++i)
      if (auto ok = write_memory(subject, plan.segments[i]); !ok) return ok;
    const Elf64_Phdr& last = plan.segments.back();
    if (::ftruncate(fd_, static_cast<off_t>(last.p_offset + last.p_filesz)) != 0)
      return fail(system_error("cannot write " + path_));
    return {};
  }

 private:
  int fd_;
  const std::string& path_;
};

}  // namespace

Result<void> write_core(Subject& subject, const CoreSettings& settings, const std::string& path) {
  Plan plan = make_plan(subject, settings);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail(system_error("cannot make " + path));
  auto written = Writer(fd.get(), path).write_all(subject, plan);
  if (!written) ::unlink(path.c_str());
  return written;
}

}  // namespace tailtrace
