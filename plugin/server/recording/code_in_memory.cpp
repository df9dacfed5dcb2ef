#include "plugin/server/recording/code_in_memory.h"

#include <algorithm>
#include <vector>

#include "decoder/code/instruction.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxRun_bytes = 1 << 20;  // what claims to be longer is no run of code

Address page_of(Address address) { return address - address.value % kPage_bytes; }

// Where the records ran, each range within a page, in order.
std::vector<CodeImage::Stretch> executed(const std::vector<BranchRecord>& records) {
  std::vector<CodeImage::Stretch> ranges;
  Address begin;
  auto add = [&](Address last) {
    if (begin.is_null() || last < begin || last - begin > kMaxRun_bytes) return;
    if (!ranges.empty() && ranges.back().begin == begin && last < ranges.back().end) return;
    for (const Address end = last + kMaxInstructionSize_bytes; begin < end;) {
      const Address next = std::min(end, page_of(begin) + kPage_bytes);
      ranges.push_back({begin, next});
      begin = next;
    }
  };
  for (const BranchRecord& record : records) {
    add(record.from);
    begin = record.to;
  }
  std::ranges::sort(ranges, {}, &CodeImage::Stretch::begin);
  return ranges;
}

class Comparison {
 public:
  Comparison(std::shared_ptr<const CodeImage> known, const ReadMemory& read)
      : known_(std::move(known)), read_(read), now_{known_->newest().value + 1} {}

  // REQUIRES: within a page; ranges come in order.
  void look_at(CodeImage::Stretch range);
  std::shared_ptr<const CodeImage> code() const { return present_ ? present_ : known_; }

 private:
  void compare(Address address, ByteSpan known);
  void read_page(Address page);
  CodeImage& present() {
    if (!present_) present_ = std::make_shared<CodeImage>(*known_);
    return *present_;
  }

  std::shared_ptr<const CodeImage> known_;
  const ReadMemory& read_;
  const Epoch now_;
  Address page_;
  Bytes bytes_;                         // of the page; empty when it cannot be read
  Address compared_to_;                 // all before it is done
  std::shared_ptr<CodeImage> present_;  // null while nothing differs
};

void Comparison::look_at(CodeImage::Stretch range) {
  if (page_of(range.begin) != page_ || page_.is_null()) read_page(page_of(range.begin));
  for (Address at = std::max(range.begin, compared_to_); at < range.end;) {
    const ByteSpan known = known_->at(at, range.end - at, known_->newest());
    if (!known.empty()) compare(at, known);
    at = at + std::max<std::uint64_t>(known.size(), 1);
  }
  compared_to_ = std::max(range.end, compared_to_);
}

void Comparison::read_page(Address page) {
  page_ = page;
  bytes_.resize(kPage_bytes);
  if (read_(page, bytes_) != kPage_bytes) bytes_.clear();
}

// Nothing that is known already wraps around, or comes too late.
void Comparison::compare(Address address, ByteSpan known) {
  if (bytes_.empty()) {
    (void)present().forget(address, known.size(), now_).has_value();
    return;
  }
  const ByteSpan there = ByteSpan(bytes_).subspan(address - page_, known.size());
  const auto first = std::ranges::mismatch(there, known).in1 - there.begin();
  if (static_cast<std::size_t>(first) == there.size()) return;
  const auto last = std::mismatch(there.rbegin(), there.rend(), known.rbegin()).first.base();
  (void)present().add(address + first, Bytes(there.begin() + first, last), now_).has_value();
}

}  // namespace

ThreadSnapshot with_code_in_memory(ThreadSnapshot snapshot, const ReadMemory& read) {
  Comparison comparison(snapshot.code, read);
  for (const CodeImage::Stretch& range : executed(snapshot.records)) comparison.look_at(range);
  snapshot.code = comparison.code();
  return snapshot;
}

}  // namespace tailtrace
