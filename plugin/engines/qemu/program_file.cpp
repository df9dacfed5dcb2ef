#include "plugin/engines/qemu/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tailtrace {
namespace {

using Kind = ProgramFile::Kind;

constexpr std::size_t kMaxHead_bytes = 256;  // what the kernel looks at (BINPRM_BUF_SIZE)

Kind kind_of(const Elf64_Ehdr& elf) {
  bool is_64 = elf.e_ident[EI_CLASS] == ELFCLASS64;
  if (elf.e_machine == EM_386 || (elf.e_machine == EM_X86_64 && !is_64)) return Kind::kElf32;
  if (elf.e_machine != EM_X86_64) return Kind::kOtherMachine;
  return elf.e_type == ET_EXEC || elf.e_type == ET_DYN ? Kind::kElf64 : Kind::kOtherElf;
}

bool is_inside(std::uint64_t offset, std::uint64_t size_bytes, std::uint64_t file_bytes) {
  return offset <= file_bytes && size_bytes <= file_bytes - offset;
}

// Whether all that the kernel would map of the program is in the file. errno is 0 when it is not,
// else why nobody knows.
bool is_whole(int fd, const Elf64_Ehdr& elf) {
  struct stat info;
  errno = 0;
  if (::fstat(fd, &info) != 0) return false;
  auto file_bytes = static_cast<std::uint64_t>(info.st_size);
  std::uint64_t at = elf.e_phoff;
  if (!is_inside(at, elf.e_phnum * sizeof(Elf64_Phdr), file_bytes)) return false;
  for (int i = 0; i < elf.e_phnum; ++i, at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr part;
    if (::pread(fd, &part, sizeof part, static_cast<off_t>(at)) != sizeof part) return false;
    if (part.p_type == PT_LOAD && !is_inside(part.p_offset, part.p_filesz, file_bytes))
      return false;
  }
  return true;
}

// "#!INTERPRETER [ONE ARGUMENT]"
std::vector<std::string> words_of(const std::string& head) {
  constexpr char kBlanks[] = " \t";
  std::string line = head.substr(2, head.find('\n') - 2);
  std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  std::size_t end = line.find_first_of(kBlanks, begin);
  std::vector<std::string> words{line.substr(begin, end - begin)};
  std::size_t argument = line.find_first_not_of(kBlanks, end);
  if (argument != std::string::npos)
    words.push_back(line.substr(argument, line.find_last_not_of(kBlanks) + 1 - argument));
  return words;
}

void look_at(int fd, const std::string& head, ProgramFile& file) {
  if (head.compare(0, 2, "#!") == 0) {
    file.interpreter = words_of(head);
    file.kind = file.interpreter.empty() ? Kind::kUnknown : Kind::kScript;
  } else if (head.size() >= sizeof(Elf64_Ehdr) && head.compare(0, SELFMAG, ELFMAG) == 0) {
    Elf64_Ehdr elf;
    std::memcpy(&elf, head.data(), sizeof elf);
    file.kind = kind_of(elf);
    file.machine = elf.e_machine;
    if (file.kind == Kind::kElf64 && !is_whole(fd, elf)) {
      file.error_number = errno;
      file.kind = errno == 0 ? Kind::kCutShort : Kind::kUnreadable;
    }
  }
}

}  // namespace

ProgramFile inspect_program(const std::string& path) {
  ProgramFile file;
  std::string head(kMaxHead_bytes, '\0');
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : ::read(fd, head.data(), head.size());
  if (n < 0) {
    file.error_number = errno;
    file.kind = Kind::kUnreadable;
  } else {
    head.resize(static_cast<std::size_t>(n));
    look_at(fd, head, file);
  }
  if (fd >= 0) ::close(fd);
  return file;
}

bool goes_by_option(const std::string& variable) {
  bool concerns_qemu = variable.compare(0, 3, "LD_") == 0 || variable.compare(0, 5, "QEMU_") == 0 ||
                       variable.compare(0, 15, "GLIBC_TUNABLES=") == 0;
  return concerns_qemu && variable.find(',') == std::string::npos;
}

std::string escape_commas(const std::string& text) {
  std::string result;
  for (char c : text) result.append(c == ',' ? 2 : 1, c);
  return result;
}

}  // namespace tailtrace
