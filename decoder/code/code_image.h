// CodeImage: what bytes the program's code had, at any point of its history.
//
// A program's code changes: modules are loaded and unloaded, a JIT writes it, a program modifies
// itself. The image is a set of sections, each with the epoch from which it holds; a later section
// hides an earlier one where they overlap, from its epoch on. What is not covered is not known:
// readers say so, they do not guess.
//
// Threading: build it first, then any number of threads may read it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

class CodeImage {
 public:
  // Bytes that hold at an address from an epoch on. Errors: kUsage when the section wraps around
  // the address space, or is added for an older epoch than one before it.
  Result<void> add(Address address, Bytes bytes, Epoch from = {});

  // The same for bytes that `owner` keeps alive, as a mapped file does.
  Result<void> add(Address address, ByteSpan bytes, std::shared_ptr<const void> owner,
                   Epoch from = {});

  // From `from` on nothing is known of [address, address + size_bytes): unmapped, or lost.
  Result<void> forget(Address address, std::uint64_t size_bytes, Epoch from);

  // Adds another program's image behind this one. From the returned epoch on all is known that
  // `other` shows from its epoch 0 on, one epoch after the other, and nothing else.
  Epoch append(const CodeImage& other);

  // Adds what `other` shows from its epoch `first` to `last`, one epoch after the other, from epoch
  // `at` on. What `other` never knew stays as it is. REQUIRES: at >= newest().
  void overlay(const CodeImage& other, Epoch first, Epoch last, Epoch at);

  // Whether this image at its newest and `other` in epoch `when` cannot be of the same moment: some
  // byte that is known here is another one there, or gone.
  bool contradicts(const CodeImage& other, Epoch when) const;

  // The bytes known from `address` on without a break, `limit` at most; empty when none are. Where
  // they cross from one section into the next the answer ends at the seam; read() joins them.
  // The span lives as long as the image.
  ByteSpan at(Address address, std::size_t limit, Epoch when = {}) const;

  // All of the section that the address is in, or what later ones left of it; empty when its bytes
  // are not known.
  struct Known {
    Address begin;
    ByteSpan bytes;
  };
  Known around(Address address, Epoch when = {}) const;

  // Whether what is known of [begin, end) in epoch `then` is still the same in epoch `now`.
  bool same(Address begin, Address end, Epoch then, Epoch now) const;

  // Stretches that showed more than one thing in their time, in order.
  struct Stretch {
    Address begin, end;
  };
  std::vector<Stretch> changed() const;

  // Whether any byte of [begin, end) was known at any time.
  bool ever_knew(Address begin, Address end) const;

  // Copies up to out.size() bytes, across seams. Returns how many were known without a break.
  std::size_t read(Address address, std::span<std::uint8_t> out, Epoch when = {}) const;

  // The newest epoch that anything was added for.
  Epoch newest() const { return newest_; }

  bool empty() const { return pieces_.empty(); }

 private:
  // What a stretch of addresses shows from an epoch on; null data: nothing is known.
  struct Version {
    Epoch from;
    const std::uint8_t* data;  // of the stretch's first byte
  };
  // A stretch [key, end) whose bytes came and went together; versions are ordered by epoch.
  struct Piece {
    Address end;
    std::vector<Version> versions;
  };

  using Pieces = std::map<Address, Piece>;

  Result<void> put(Address address, std::uint64_t size_bytes, const std::uint8_t* data, Epoch from);
  // The first piece that ends behind `address`.
  Pieces::const_iterator first_behind(Address address) const;
  // What a piece shows in an epoch; null: it was not known yet.
  static const Version* version_in(const Piece& piece, Epoch when);
  bool contradicts(Address begin, Address end, const std::uint8_t* data) const;
  void split_at(Address address);

  Pieces pieces_;
  std::vector<std::shared_ptr<const void>> owners_;
  Epoch newest_;
};

}  // namespace tailtrace
