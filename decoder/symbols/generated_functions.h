// GeneratedFunctions: names of functions that a program made while it ran, by their addresses.
//
// Whatever is added hides what was known of its addresses before. What is left of an older function
// keeps its name: that is what was executed there. What is hidden is found again by its code, where
// that was told: by whoever knows which code was there at a time.
//
// Threading: immutable once filled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace {

class GeneratedFunctions {
 public:
  static constexpr std::size_t kMaxFunctions = std::size_t{1} << 22;
  static constexpr std::size_t kMaxName_bytes = 4096;
  // Of all together: a file can give one name to many functions.
  static constexpr std::size_t kMaxNames_bytes = std::size_t{256} << 20;
  // Made in one place one after the other: the newest so many are known.
  static constexpr std::size_t kMaxInPlace = 16;

  // Names are cut to their limit, and have '?' for control characters. `code` is what was told of
  // its bytes, the first one at `begin`; may be empty, must stay. Returns false, and knows nothing
  // of it, when it has no size or name, wraps around the address space, or is one too many.
  bool add(Address begin, std::uint64_t size_bytes, std::string_view name, ByteSpan code = {});

  // Keeps what codes refer to.
  void keep(std::shared_ptr<const Bytes> bytes) { kept_.push_back(std::move(bytes)); }
  // Whether any was added in the place of another. If not, no code is ever looked at.
  bool any_replaced() const { return any_replaced_; }
  void drop_code();

  // What holds for every address of [begin, end), a stretch around the one asked for.
  struct Cover {
    const std::string* name = nullptr;  // null: no function covers it
    Address entry;
    Address begin;
    Address end{~0ull};
    bool is_replaced = false;  // there were others
    bool has_code = false;     // that was told
    std::size_t made = 0;      // which one it is: the same number is the same function
  };
  // The newest function there.
  Cover cover(Address address) const;

  // How much of a function's code was there at a time, in bytes; nothing: none of it is known.
  struct Likeness {
    std::uint64_t known_bytes = 0, same_bytes = 0;
  };
  using Compare = std::function<Likeness(Address begin, ByteSpan code)>;
  // The one whose code is most like what was there: the newest of those, and the newest of all if
  // no code tells.
  Cover cover(Address address, const Compare& compare) const;

  // The one that the newest there was made in the place of; nothing: there was none, or several.
  std::optional<Cover> only_earlier(Address address) const;

  bool empty() const { return stretches_.empty(); }
  // Of all that were added.
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Made {
    Address entry;
    std::size_t name = 0;
    ByteSpan code;
  };
  struct Stretch {
    Address end;
    std::vector<std::uint32_t> made;  // the newest is last
  };
  void split_at(Address address);
  void put(Stretch& stretch, std::uint32_t made);
  Cover cover_of(Address begin, const Stretch& stretch, std::uint32_t made) const;
  // Null: there is none.
  const std::pair<const Address, Stretch>* stretch_of(Address address) const;

  std::map<Address, Stretch> stretches_;  // by begin; apart from each other
  std::vector<Made> made_;
  std::vector<std::string> names_;
  std::size_t names_bytes_ = 0;
  std::vector<std::shared_ptr<const Bytes>> kept_;
  bool any_replaced_ = false;
};

}  // namespace tailtrace
