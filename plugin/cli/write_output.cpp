#include "plugin/cli/write_output.h"

#include <cerrno>
#include <system_error>

namespace tailtrace {

Result<void> write_output(const std::string& path, OlderFile older, const WriteOutput& write) {
  Result<OutputFile> output = OutputFile::open(path, older);
  if (!output) return fail(std::move(output.error()));
  try {
    if (Result<void> written = write(output->file()); !written) return written;
  } catch (const std::system_error& error) {
    if (std::ferror(output->file()) == 0) throw;
    return fail(output->error(error.code().value()));
  }
  return output->finish();
}

void put_text(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size())
    throw std::system_error(errno, std::generic_category());
}

}  // namespace tailtrace
