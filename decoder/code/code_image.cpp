#include "decoder/code/code_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace tailtrace {

Result<void> CodeImage::add(Address address, Bytes bytes, Epoch from) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return add(address, ByteSpan(*owner), owner, from);
}

Result<void> CodeImage::add(Address address, ByteSpan bytes, std::shared_ptr<const void> owner,
                            Epoch from) {
  if (bytes.empty()) return {};
  owners_.push_back(std::move(owner));
  return put(address, bytes.size(), bytes.data(), from);
}

Result<void> CodeImage::forget(Address address, std::uint64_t size_bytes, Epoch from) {
  return put(address, size_bytes, nullptr, from);
}

CodeImage::Pieces::const_iterator CodeImage::first_behind(Address address) const {
  auto it = pieces_.upper_bound(address);
  if (it != pieces_.begin() && std::prev(it)->second.end > address) --it;
  return it;
}

// After this no piece crosses `address`.
void CodeImage::split_at(Address address) {
  auto it = pieces_.upper_bound(address);
  if (it == pieces_.begin()) return;
  --it;
  if (it->first == address || it->second.end <= address) return;
  Piece upper = it->second;
  it->second.end = address;
  for (Version& v : upper.versions)
    if (v.data != nullptr) v.data += address - it->first;
  pieces_.emplace(address, std::move(upper));
}

Result<void> CodeImage::put(Address address, std::uint64_t size_bytes, const std::uint8_t* data,
                            Epoch from) {
  if (size_bytes == 0) return {};
  // The end of a piece is an address, so the last byte of all belongs to none.
  if (address.value + size_bytes == 0) --size_bytes;
  if (address.value + size_bytes < address.value)
    return fail(ErrorCode::kUsage,
                fmt::format("code at {:#x} cannot be {} bytes long", address.value, size_bytes),
                "it would wrap around the address space");
  if (from < newest_)
    return fail(ErrorCode::kUsage, fmt::format("code of epoch {} comes too late", from.value),
                fmt::format("epoch {} was added before it", newest_.value));
  newest_ = from;
  Address end = address + size_bytes;
  split_at(address);
  split_at(end);
  Address at = address;
  while (at < end) {
    auto it = pieces_.lower_bound(at);
    Address gap_end = it == pieces_.end() ? end : std::min(end, it->first);
    if (at < gap_end) it = pieces_.emplace_hint(it, at, Piece{gap_end, {}});
    std::vector<Version>& versions = it->second.versions;
    if (!versions.empty() && versions.back().from == from) versions.pop_back();
    versions.push_back({from, data == nullptr ? nullptr : data + (at - address)});
    at = it->second.end;
  }
  return {};
}

Epoch CodeImage::append(const CodeImage& other) {
  const Epoch base{pieces_.empty() ? newest_.value : newest_.value + 1};
  for (auto& [address, piece] : pieces_)
    if (piece.versions.back().data != nullptr) piece.versions.push_back({base, nullptr});
  newest_ = base;
  overlay(other, {0}, other.newest_, base);
  return base;
}

void CodeImage::overlay(const CodeImage& other, Epoch first, Epoch last, Epoch at) {
  struct Section {
    Address begin, end;
    Version version;
  };
  std::vector<Section> sections;
  for (const auto& [address, piece] : other.pieces_) {
    const Version* known = version_in(piece, first);
    if (known != nullptr) sections.push_back({address, piece.end, {first, known->data}});
    for (const Version& version : piece.versions)
      if (version.from > first && version.from <= last)
        sections.push_back({address, piece.end, version});
  }
  std::stable_sort(sections.begin(), sections.end(), [](const Section& a, const Section& b) {
    return a.version.from < b.version.from;
  });
  owners_.insert(owners_.end(), other.owners_.begin(), other.owners_.end());
  // Nothing that another image holds wraps around, or comes too late.
  for (const Section& section : sections)
    (void)put(section.begin, section.end - section.begin, section.version.data,
              {at.value + (section.version.from.value - first.value)})
        .has_value();
  newest_ = {at.value + (std::max(first, std::min(last, other.newest_)).value - first.value)};
}

bool CodeImage::contradicts(const CodeImage& other, Epoch when) const {
  return std::any_of(other.pieces_.begin(), other.pieces_.end(), [&](const auto& known) {
    const Version* version = version_in(known.second, when);
    return version != nullptr && contradicts(known.first, known.second.end, version->data);
  });
}

// Whether anything known of [begin, end) is something else than `data`; null: than nothing.
bool CodeImage::contradicts(Address begin, Address end, const std::uint8_t* data) const {
  for (auto it = first_behind(begin); it != pieces_.end() && it->first < end; ++it) {
    const std::uint8_t* ours = it->second.versions.back().data;
    const Address low = std::max(begin, it->first), high = std::min(end, it->second.end);
    if (ours == nullptr) continue;
    if (data == nullptr) return true;
    ours += low - it->first;
    const std::uint8_t* theirs = data + (low - begin);
    if (ours != theirs && std::memcmp(ours, theirs, high - low) != 0) return true;
  }
  return false;
}

const CodeImage::Version* CodeImage::version_in(const Piece& piece, Epoch when) {
  auto after = std::upper_bound(piece.versions.begin(), piece.versions.end(), when,
                                [](Epoch e, const Version& v) { return e < v.from; });
  return after == piece.versions.begin() ? nullptr : &*--after;
}

CodeImage::Known CodeImage::around(Address address, Epoch when) const {
  auto it = pieces_.upper_bound(address);
  if (it == pieces_.begin()) return {};
  --it;
  if (it->second.end <= address) return {};
  const Version* version = version_in(it->second, when);
  if (version == nullptr || version->data == nullptr) return {};
  return {it->first, {version->data, it->second.end - it->first}};
}

ByteSpan CodeImage::at(Address address, std::size_t limit, Epoch when) const {
  const Known known = around(address, when);
  if (known.bytes.empty()) return {};
  const ByteSpan rest = known.bytes.subspan(address - known.begin);
  return rest.first(std::min(limit, rest.size()));
}

bool CodeImage::same(Address begin, Address end, Epoch then, Epoch now) const {
  for (auto it = first_behind(begin); it != pieces_.end() && it->first < end; ++it) {
    const Version* was = version_in(it->second, then);
    const Version* is = version_in(it->second, now);
    if (was == is || was == nullptr || was->data == nullptr) continue;
    if (is == nullptr || is->data == nullptr) return false;
    const Address low = std::max(begin, it->first), high = std::min(end, it->second.end);
    const std::size_t offset = low - it->first;
    if (std::memcmp(was->data + offset, is->data + offset, high - low) != 0) return false;
  }
  return true;
}

std::vector<CodeImage::Stretch> CodeImage::changed() const {
  std::vector<Stretch> all;
  for (const auto& [begin, piece] : pieces_)
    if (piece.versions.size() > 1) all.push_back({begin, piece.end});
  return all;
}

bool CodeImage::ever_knew(Address begin, Address end) const {
  for (auto piece = first_behind(begin); piece != pieces_.end() && piece->first < end; ++piece)
    for (const Version& version : piece->second.versions)
      if (version.data != nullptr) return true;
  return false;
}

std::size_t CodeImage::read(Address address, std::span<std::uint8_t> out, Epoch when) const {
  std::size_t done = 0;
  while (done < out.size()) {
    ByteSpan bytes = at(address + done, out.size() - done, when);
    if (bytes.empty()) break;
    std::memcpy(out.data() + done, bytes.data(), bytes.size());
    done += bytes.size();
  }
  return done;
}

}  // namespace tailtrace
