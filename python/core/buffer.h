// Buffer: memory that Python reads in place, through the buffer protocol; never written.
//
// It keeps its owner alive, and so does every memoryview and NumPy array made of it.
//
// Threading: immutable.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tailtrace::python {

class Buffer {
 public:
  // `format` is one item in the struct module's words, as PEP 3118 extends them.
  template <class T>
  Buffer(std::shared_ptr<const void> owner, std::span<const T> items, std::string format)
      : owner_(std::move(owner)),
        data_(items.data()),
        count_(items.size()),
        item_size_bytes_(sizeof(T)),
        format_(std::move(format)) {}

  pybind11::buffer_info info() const;
  std::size_t count() const { return count_; }
  const std::string& format() const { return format_; }

 private:
  std::shared_ptr<const void> owner_;
  const void* data_;
  std::size_t count_;
  std::size_t item_size_bytes_;
  std::string format_;
};

// A buffer of the vector's items, which become its own.
template <class T>
Buffer own_buffer(std::vector<T> items, std::string format) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(items));
  return Buffer(owner, std::span<const T>(*owner), std::move(format));
}

void bind_buffer(pybind11::module_& module);

}  // namespace tailtrace::python
