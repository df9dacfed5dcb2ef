#include "decoder/base/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "decoder/base/place.h"

namespace tailtrace {
namespace {

constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;

// That nobody else has, by accident or by guessing.
std::string own_name(const std::string& path) {
  std::uint64_t number = 0;
  (void)::getrandom(&number, sizeof number, 0);
  return fmt::format("{}.{:016x}", path, number);
}

// Whether it is moved; else errno says why.
bool move_file(const std::string& from, const std::string& to, OlderFile older) {
  if (older == OlderFile::kStays) return move_to_free_place(from, to);
  return std::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path, OlderFile older) {
  struct stat place, file;
  const bool is_new = ::lstat(path.c_str(), &place) != 0;
  const bool is_file = ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
  OutputFile output(path, older);
  if (is_file && older == OlderFile::kStays) return fail(output.error(EEXIST));
  UniqueFd fd = is_new || S_ISREG(place.st_mode) ? output.open_beside()
                                                 : UniqueFd(::open(path.c_str(), kFlags | O_TRUNC));
  if (fd) output.file_.reset(::fdopen(fd.get(), "w"));
  if (!output.file_) return fail(output.error());
  fd.release();
  return output;
}

OutputFile::~OutputFile() {
  if (has_name_) ::unlink(part_.c_str());
}

UniqueFd OutputFile::open_beside() {
  part_ = own_name(path_);
  UniqueFd fd(::open(folder_holding(path_).c_str(), kFlags | O_TMPFILE, 0600));
  if (!fd && errno == EOPNOTSUPP) {
    fd = UniqueFd(::open(part_.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
    has_name_ = static_cast<bool>(fd);
  }
  return fd;
}

bool OutputFile::give_name() {
  const std::string file = fmt::format("/proc/self/fd/{}", ::fileno(file_.get()));
  has_name_ = std::fflush(file_.get()) == 0 &&
              ::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) == 0;
  return has_name_;
}

Result<void> OutputFile::finish() {
  if (!part_.empty() && !has_name_ && !give_name()) return fail(error());
  if (std::fclose(file_.release()) != 0) return fail(error());
  if (!has_name_) return {};
  if (!move_file(part_, path_, older_)) return fail(error());
  has_name_ = false;
  return {};
}

Error OutputFile::error(int error_number) const {
  if (error_number != EEXIST) return system_error("cannot write " + path_, error_number);
  return {ErrorCode::kUsage,
          "cannot write " + path_,
          "something is there already",
          "choose another name, or remove it",
          {}};
}

}  // namespace tailtrace
