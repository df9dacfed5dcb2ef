// Compressed sections of debug information, as distributions have them.
//
// libdw unpacks all of a file's, one after the other, when it opens it. For the C library that
// takes longer than all else that a short question needs; so sections that nobody uses are hidden
// from it, and the largest is unpacked beside the others, by a faster library than zlib.
#pragma once

#include <libelf.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tailtrace {

using UnpackedBytes = std::unique_ptr<std::uint8_t[]>;

// Leaves no debug information in a file for libdw to unpack, and hides the sections of it that are
// `unused`. What cannot be unpacked stays as it is. Nobody else may use the file meanwhile. The
// bytes that are returned must outlive whoever reads the debug information.
[[nodiscard]] std::vector<UnpackedBytes> unpack_sections(Elf* elf,
                                                         std::span<const std::string_view> unused);

}  // namespace tailtrace
