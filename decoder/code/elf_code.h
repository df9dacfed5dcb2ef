// The code of ELF files: their executable segments as sections of a CodeImage.
//
// Threading: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/code/code_image.h"

namespace tailtrace {

// Whether the bytes begin as an ELF file does.
bool is_elf(ByteSpan bytes);

// By how much the segments of a file were moved whose first one, at `first`, was loaded at `base`.
// `base` may be the page that holds its begin, as maps of processes have it. (A kernel's later
// segments may lie below its first.)
std::uint64_t load_bias(Address base, std::uint64_t first);

// Adds all executable segments of a file; 32- and 64-bit. `base` is the address at which its first
// segment was loaded; without it the segments are where the file says.
// Errors: kSystem or kPermission when it cannot be read; kBadInput when it is no x86 ELF file, or
// cut short, or has no executable segment, or does not fit the address space.
Result<void> add_elf_code(CodeImage& image, const std::string& path, std::optional<Address> base);

// The same of a file that is open. `name` is what errors call it.
Result<void> add_elf_code(CodeImage& image, std::shared_ptr<const MappedFile> file,
                          const std::string& name, std::optional<Address> base);

}  // namespace tailtrace
