// Names and limits of a bundle's files, as BUNDLE.md has them.
//
// Threading: constants and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tailtrace {

constexpr char kBundleName[] = "bundle.json";
constexpr char kBundleSchema[] = "tailtrace.bundle/1";
constexpr std::size_t kBundleMaxJson_bytes = 64 << 20;
constexpr std::size_t kBundleMaxThreads = 1 << 16;
constexpr std::uint64_t kBundleMaxRecords = 1ull << 40;
constexpr std::size_t kBundleMaxEngine_bytes = 16;
constexpr std::size_t kBundleMaxModules = 1 << 14;
constexpr std::size_t kBundleMaxClocks = 16;
constexpr std::size_t kBundleMaxRegisters = 256;
constexpr std::size_t kBundleMaxFrames = 1024;
constexpr std::size_t kBundleMaxText_bytes = 4096;

inline std::string bundle_records_path(const std::string& bundle, std::uint64_t file) {
  return bundle + "/" + std::to_string(file) + ".records";
}

inline std::string bundle_stream_path(const std::string& bundle, std::uint64_t file) {
  return bundle + "/" + std::to_string(file) + ".stream";
}

// In the bundle's folder.
inline std::string bundle_trace_name(std::uint64_t file) { return std::to_string(file) + ".pt"; }

}  // namespace tailtrace
