#include "decoder/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/file.h"

namespace tailtrace {

Result<OutputFile> OutputFile::open(const std::string& path, OlderFile older) {
  struct stat place, file;
  const bool is_new = ::lstat(path.c_str(), &place) != 0;
  const bool is_file = ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
  if (is_file && older == OlderFile::kStays)
    return fail(ErrorCode::kUsage, "cannot write " + path, "something is there already",
                "choose another name, or remove it");
  OutputFile output(path);
  int flags = O_TRUNC;
  if (is_new || S_ISREG(place.st_mode)) {
    output.part_ = path + ".part";
    ::unlink(output.part_.c_str());  // of one that was killed
    flags = O_CREAT | O_EXCL;
  }
  const std::string& opened = output.part_.empty() ? path : output.part_;
  UniqueFd fd(::open(opened.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0600));
  if (fd) output.file_.reset(::fdopen(fd.get(), "w"));
  if (!output.file_) return fail(output.error());
  fd.release();
  return output;
}

OutputFile::~OutputFile() {
  if (!part_.empty()) ::unlink(part_.c_str());
}

Result<void> OutputFile::finish() {
  if (std::fclose(file_.release()) != 0) return fail(error());
  if (!part_.empty() && std::rename(part_.c_str(), path_.c_str()) != 0) return fail(error());
  part_.clear();
  return {};
}

Error OutputFile::error(int error_number) const {
  return system_error("cannot write " + path_, error_number);
}

}  // namespace tailtrace
