#include "decoder/symbols/file_code.h"

#include <algorithm>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {

std::vector<Mapping> executed_files(std::span<const Mapping> mappings,
                                    std::span<const BranchRecord> records) {
  std::vector<bool> is_used(mappings.size());
  const Mapping* last = nullptr;
  for (const BranchRecord& record : records)
    for (Address address : {record.from, record.to}) {
      if (last != nullptr && last->begin <= address && address < last->end) continue;
      last = mapping_at(mappings, address);
      if (last != nullptr) is_used[static_cast<std::size_t>(last - mappings.data())] = true;
    }
  std::vector<Mapping> used;
  for (std::size_t i = 0; i < mappings.size(); ++i)
    if (is_used[i] && mappings[i].has_file()) used.push_back(mappings[i]);
  return used;
}

std::vector<FileCode::Piece> FileCode::add_to(CodeImage& image, std::span<const Mapping> mappings) {
  std::vector<Piece> found;
  for (const Mapping& mapping : mappings) {
    const std::optional<File>& file = file_at(mapping.file());
    if (!file || file->whole->bytes().size() <= mapping.file_offset_bytes) continue;
    ByteSpan code = file->whole->bytes().subspan(mapping.file_offset_bytes);
    code = code.first(std::min<std::uint64_t>(code.size(), mapping.end - mapping.begin));
    if (image.add(mapping.begin, code, file->whole, image.newest()))
      found.push_back({mapping, file->build_id});
  }
  return found;
}

const std::optional<FileCode::File>& FileCode::file_at(const std::string& path) {
  auto [known, is_new] = files_.try_emplace(path);
  if (is_new) known->second = open(path);
  return known->second;
}

// One that is no ELF file is code all the same.
std::optional<FileCode::File> FileCode::open(const std::string& path) {
  auto whole = MappedFile::open(path);
  auto elf = whole ? ElfFile::open(path) : fail(std::move(whole.error()));
  const bool is_read = whole && (elf || elf.error().code == ErrorCode::kBadInput);
  if (!is_read) {
    problems_.push_back(std::move(elf.error()));
    problems_.back().what = "cannot read the code of " + path;
    return std::nullopt;
  }
  return File{std::make_shared<const MappedFile>(std::move(*whole)),
              elf ? elf->build_id() : std::string()};
}

CodeImage with_newest(const CodeImage& known, const CodeImage& now) {
  CodeImage both = known;
  both.append(now);
  return both;
}

}  // namespace tailtrace
