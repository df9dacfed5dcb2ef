#include "decoder/bundle/trace_file.h"

#include <sys/stat.h>

namespace tailtrace {

Result<MappedFile> open_trace(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0)
    return MappedFile();
  return MappedFile::open_finished(path);
}

}  // namespace tailtrace
