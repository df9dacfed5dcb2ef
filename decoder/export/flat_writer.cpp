#include "decoder/export/flat_writer.h"

namespace tailtrace {

// A table is preceded by the list of where its fields are: two sizes, then an offset for each slot.
std::vector<FlatWriter::Reference> FlatWriter::table(Reference reference,
                                                     std::span<const FlatField> fields) {
  unsigned slots = 0, size_bytes = 4;
  for (const FlatField& field : fields) {
    slots = std::max(slots, field.slot + 1);
    size_bytes += field.size_bytes;
  }
  const std::size_t list_bytes = 4 + 2 * std::size_t{slots};
  // The table begins 4 bytes before its first field.
  align(8, list_bytes + 4);
  const std::size_t list = bytes_.size();
  put(list_bytes, 2);
  put(size_bytes, 2);
  bytes_.resize(bytes_.size() + 2 * std::size_t{slots});
  lead(reference);
  put(list_bytes, 4);
  std::vector<Reference> places;
  std::uint64_t offset = 4;
  for (const FlatField& field : fields) {
    if (field.size_bytes >= 4) places.push_back(bytes_.size());
    set(list + 4 + 2 * std::size_t{field.slot}, offset, 2);
    put(field.value, field.size_bytes);
    offset += field.size_bytes;
  }
  return places;
}

void FlatWriter::text(Reference reference, std::string_view text) {
  align(4, 0);
  lead(reference);
  put(text.size(), 4);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  put(0, 1);
}

void FlatWriter::numbers(Reference reference, std::size_t count,
                         std::span<const std::uint64_t> numbers) {
  align(8, 4);
  lead(reference);
  put(count, 4);
  for (std::uint64_t number : numbers) put(number, 8);
}

std::vector<FlatWriter::Reference> FlatWriter::references(Reference reference, std::size_t count) {
  align(4, 0);
  lead(reference);
  put(count, 4);
  std::vector<Reference> places;
  for (std::size_t i = 0; i < count; ++i) {
    places.push_back(bytes_.size());
    put(0, 4);
  }
  return places;
}

}  // namespace tailtrace
