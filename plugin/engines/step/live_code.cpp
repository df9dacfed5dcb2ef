#include "plugin/engines/step/live_code.h"

#include <algorithm>
#include <cassert>

namespace tailtrace {

LiveCode::LiveCode(Read read, ReadMap read_map)
    : read_(std::move(read)),
      read_map_(std::move(read_map)),
      image_(std::make_shared<CodeImage>()),
      reader_(std::make_unique<CodeReader>(*image_)) {
  take_map(MemoryMap::parse(read_map_()));
}

std::optional<Instruction> LiveCode::at(Address address) {
  Address page = page_of(address), last_page = page_of(address + (kMaxInstructionSize_bytes - 1));
  if (page != trusted_page_ || last_page != page) {
    const Page& first = prepare(page);
    bool stable = first.stable && first.readable;
    if (last_page != page) stable &= prepare(last_page).stable;
    if (!stable) compare(address, kMaxInstructionSize_bytes);
    trusted_page_ = stable ? page : kNoPage;
  }
  return reader_->at(address);
}

// Whatever is known of the page is right after this, but for pages that are not stable.
LiveCode::Page& LiveCode::prepare(Address page) {
  // The map is as old as the last system call; a page it does not know came since.
  if (map_.find(page) == nullptr && !pages_[page].readable) take_map(MemoryMap::parse(read_map_()));
  Page& state = pages_[page];
  if (!state.readable) {
    load(page, state);
  } else if (state.suspect) {
    state.stable = map_.is_stable_code(page);
    state.suspect = false;
    compare(page, kPage_bytes);
  }
  return state;
}

void LiveCode::load(Address page, Page& state) {
  Bytes bytes(kPage_bytes);
  bytes.resize(read_(page, bytes));
  state.readable = !bytes.empty();
  state.suspect = false;
  if (!state.readable) return;
  state.stable = map_.is_stable_code(page);
  add(page, std::move(bytes), epoch());
}

// Begins an epoch if the process holds other bytes than the image. Returns whether it did.
bool LiveCode::compare(Address address, std::size_t size_bytes) {
  Bytes now(size_bytes), held(size_bytes);
  now.resize(read_(address, now));
  held.resize(image_->read(address, held, epoch()));
  std::size_t common = std::min(now.size(), held.size());
  auto first =
      std::mismatch(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(common), held.begin());
  std::size_t begin = static_cast<std::size_t>(first.first - now.begin());
  std::size_t end = now.size();
  while (end > begin && end <= held.size() && now[end - 1] == held[end - 1]) --end;
  if (begin >= end) return false;
  Bytes changed(now.begin() + static_cast<std::ptrdiff_t>(begin),
                now.begin() + static_cast<std::ptrdiff_t>(end));
  Epoch next{epoch().value + 1};
  add(address + begin, std::move(changed), next);
  reader_->set_epoch(next);
  return true;
}

bool LiveCode::is_in_vdso(Address address) const {
  const MemoryRegion* region = map_.find(address);
  return region != nullptr && region->path == "[vdso]";
}

bool LiveCode::recheck(Address address) {
  trusted_page_ = kNoPage;
  bool changed = compare(page_of(address), kPage_bytes);
  Address last_page = page_of(address + (kMaxInstructionSize_bytes - 1));
  if (last_page != page_of(address)) changed |= compare(last_page, kPage_bytes);
  return changed;
}

// Most calls leave the map as it is: to understand all of it anew would take longer than to read
// it.
void LiveCode::system_call_done() {
  const std::string text = read_map_();
  trusted_page_ = kNoPage;
  if (text == map_.text() && !text.empty()) {
    for (auto& [page, state] : pages_) state.suspect |= map_.find(page) == nullptr;
    return;
  }
  MemoryMap now = MemoryMap::parse(text);
  for (auto& [page, state] : pages_) {
    const MemoryRegion *before = map_.find(page), *after = now.find(page);
    bool same = before != nullptr && after != nullptr && before->backing == after->backing &&
                before->writable == after->writable && before->executable == after->executable;
    if (!same) state.suspect = true;
  }
  take_map(std::move(now));
}

// Where other code is now, what is known is over, whatever the bytes of the other are.
void LiveCode::take_map(MemoryMap map) {
  map_ = std::move(map);
  stable_code_ = {};
  for (const MemoryRegion& region : map_.regions())
    if (map_.is_stable_code(region.begin))
      stable_code_[is_in_vdso(region.begin)].push_back({region.begin, region.end});
  const Epoch next{epoch().value + 1};
  const std::vector<FormerMaps::Range> replaced = former_maps_.see(map_.text(), next);
  if (replaced.empty()) return;
  for (const FormerMaps::Range& range : replaced) {
    auto forgotten = writable_image().forget(range.begin, range.end - range.begin, next);
    assert(forgotten);
    (void)forgotten;
    std::erase_if(pages_, [&](const auto& page) {
      return range.begin <= page.first && page.first < range.end;
    });
  }
  reader_->set_epoch(next);
}

void LiveCode::written(Address address, std::uint64_t size_bytes) {
  for (auto& [page, state] : pages_)
    if (page < address + size_bytes && address < page + kPage_bytes) state.suspect = true;
  trusted_page_ = kNoPage;
}

// The image as it was handed out stays as it is: readers of it may be anywhere.
CodeImage& LiveCode::writable_image() {
  if (image_.use_count() > 1) {
    image_ = std::make_shared<CodeImage>(*image_);
    Epoch when = reader_->epoch();
    reader_ = std::make_unique<CodeReader>(*image_);
    reader_->set_epoch(when);
  }
  return *image_;
}

void LiveCode::add(Address address, Bytes bytes, Epoch from) {
  held_bytes_ += bytes.size();
  auto added = writable_image().add(address, std::move(bytes), from);
  assert(added);
  (void)added;
}

}  // namespace tailtrace
