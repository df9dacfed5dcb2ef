#include "decoder/code/elf_code.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tailtrace {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfPtr = std::unique_ptr<Elf, ElfEnd>;

tl::unexpected<Error> bad_elf(const std::string& path, std::string why) {
  return fail(ErrorCode::kBadInput, "cannot read the code of " + path, std::move(why));
}

Result<std::vector<GElf_Phdr>> loaded_segments(Elf* elf, const std::string& path) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return bad_elf(path, elf_errmsg(-1));
  std::vector<GElf_Phdr> segments;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr)
      return bad_elf(path, elf_errmsg(-1));
    if (segment.p_type == PT_LOAD) segments.push_back(segment);
  }
  return segments;
}

}  // namespace

bool is_elf(ByteSpan bytes) {
  return bytes.size() >= SELFMAG && std::equal(ELFMAG, ELFMAG + SELFMAG, bytes.begin());
}

std::uint64_t load_bias(Address base, std::uint64_t first) {
  bool is_page = base.value % kPage_bytes == 0;
  return base.value - (is_page ? first & ~(kPage_bytes - 1) : first);
}

Result<void> add_elf_code(CodeImage& image, const std::string& path, std::optional<Address> base) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return add_elf_code(image, std::make_shared<const MappedFile>(std::move(*file)), path, base);
}

Result<void> add_elf_code(CodeImage& image, std::shared_ptr<const MappedFile> file,
                          const std::string& path, std::optional<Address> base) {
  ByteSpan bytes = file->bytes();
  elf_version(EV_CURRENT);
  // elf_memory takes no pointer to const, but does not write into a file that it only reads.
  ElfPtr elf(elf_memory(const_cast<char*>(as_text(bytes).data()), bytes.size()));
  GElf_Ehdr header;
  if (!is_elf(bytes) || !elf || gelf_getehdr(elf.get(), &header) == nullptr)
    return bad_elf(path, "it is no ELF file");
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_386)
    return bad_elf(path, "it is for another processor than x86");
  auto segments = loaded_segments(elf.get(), path);
  if (!segments) return fail(segments.error());
  std::uint64_t bias = base && !segments->empty() ? load_bias(*base, segments->front().p_vaddr) : 0;
  bool any = false;
  for (const GElf_Phdr& segment : *segments) {
    if ((segment.p_flags & PF_X) == 0 || segment.p_filesz == 0) continue;
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset)
      return bad_elf(path, "it is cut short");
    auto added = image.add({segment.p_vaddr + bias},
                           bytes.subspan(segment.p_offset, segment.p_filesz), file);
    if (!added) return added;
    any = true;
  }
  if (!any) return bad_elf(path, "it has no executable segment");
  return {};
}

}  // namespace tailtrace
