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
  if (address.value + size_bytes - 1 < address.value || address.value + size_bytes == 0)
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
  struct Section {
    Address begin, end;
    Version version;
  };
  std::vector<Section> sections;
  for (const auto& [address, piece] : other.pieces_)
    for (const Version& version : piece.versions) sections.push_back({address, piece.end, version});
  std::stable_sort(sections.begin(), sections.end(), [](const Section& a, const Section& b) {
    return a.version.from < b.version.from;
  });
  owners_.insert(owners_.end(), other.owners_.begin(), other.owners_.end());
  // Nothing that another image holds wraps around, or comes too late.
  for (const Section& section : sections)
    (void)put(section.begin, section.end - section.begin, section.version.data,
              {base.value + section.version.from.value})
        .has_value();
  newest_ = {base.value + other.newest_.value};
  return base;
}

ByteSpan CodeImage::at(Address address, std::size_t limit, Epoch when) const {
  auto it = pieces_.upper_bound(address);
  if (it == pieces_.begin()) return {};
  --it;
  if (it->second.end <= address) return {};
  const std::vector<Version>& versions = it->second.versions;
  auto after = std::upper_bound(versions.begin(), versions.end(), when,
                                [](Epoch e, const Version& v) { return e < v.from; });
  if (after == versions.begin()) return {};
  const Version& version = *--after;
  if (version.data == nullptr) return {};
  std::uint64_t held = it->second.end - address;
  return {version.data + (address - it->first),
          static_cast<std::size_t>(std::min<std::uint64_t>(limit, held))};
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
