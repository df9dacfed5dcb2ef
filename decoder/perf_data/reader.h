// PerfDataReader: takes the bytes of a perf.data file apart; see file.h.
//
// Threading: one thread at a time.
#pragma once

#include <zstd.h>

#include <unordered_map>

#include "decoder/perf_data/file.h"

namespace tailtrace::perf {

class PerfDataReader {
 public:
  PerfDataReader(ByteSpan bytes, const std::string& name, std::shared_ptr<const void> owner,
                 const PerfDataLimits& limits);

  // REQUIRES: called once.
  Result<PerfData> read();

 private:
  struct EndUnpacking {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  struct Place {
    std::uint64_t offset = 0, size = 0;
  };

  Result<void> read_file();
  Result<void> read_attrs(Place attrs, std::uint64_t entry_bytes);
  void read_features(std::uint64_t end_of_data);
  Result<void> add_attr(ByteSpan attr, ByteSpan ids);
  // All records of a stretch; what is left of it, when its last is not whole.
  Result<ByteSpan> walk(ByteSpan stretch, bool is_unpacked);
  // Returns how many bytes it has, with those that follow it; 0: more than there are.
  Result<std::uint64_t> take(ByteSpan record, ByteSpan from_record);
  Result<void> take_own(ByteSpan record);
  Result<void> take_of_kernel(ByteSpan record);
  Result<void> unpack(ByteSpan packed);
  void take_feature(std::uint64_t feature, ByteSpan content);
  void take_build_ids(ByteSpan records);
  void take_auxtrace_info(ByteSpan record);
  Result<void> take_aux(ByteSpan record, ByteSpan content);
  std::uint32_t attr_of(ByteSpan record, RecordHeader header) const;
  std::uint64_t time_of(ByteSpan record, RecordHeader header, const RecordFormat& format) const;
  void settle_id_place();

  // Empty when it is not there.
  ByteSpan at(Place place) const;
  Place place_at(std::size_t offset) const;
  tl::unexpected<Error> bad(std::string why, std::string fix = {}) const;
  void problem(std::string why, std::string fix = {});

  ByteSpan bytes_;
  PerfDataLimits limits_;
  PerfData data_;
  std::unordered_map<std::uint64_t, std::uint32_t> attr_by_id_;
  std::size_t ids_ = 0;
  bool has_ids_ = true;  // records say of which event they are, at the same place for all
  std::unique_ptr<ZSTD_DCtx, EndUnpacking> unpacking_;
  Bytes left_;  // of what was unpacked: the begin of a record
  std::uint64_t unpacked_bytes_ = 0;
};

}  // namespace tailtrace::perf
