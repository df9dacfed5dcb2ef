#include "plugin/server/below/program_type.h"

#include <elf.h>
#include <fmt/core.h>

#include <cstring>

#include "decoder/base/file.h"

namespace tailtrace {

Result<void> check_program(std::int32_t pid) {
  std::string path = fmt::format("/proc/{}/exe", pid);
  auto file = MappedFile::open(path);
  if (!file || file->bytes().size() < sizeof(Elf64_Ehdr)) return {};
  auto header = load<Elf64_Ehdr>(file->bytes());
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64) return {};
  return fail(ErrorCode::kUsage, "this program cannot be recorded", "it is no 64-bit x86 program",
              "build it for x86-64");
}

}  // namespace tailtrace
