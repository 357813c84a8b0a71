// Library: a shared object that is opened at run time and never closed (a vendor's driver library
// must outlive everything that static objects still want to give back).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "keel/base/result.h"

namespace keel::vendor {

class Library {
 public:
  // The first of `names` that can be opened; kUnavailable says why none could. `what` is the
  // vendor's name for it in capitals. If the environment variable KEEL_<what>_LIBRARY is set, that
  // file is the only one that is tried.
  static Result<Library> Open(std::string_view what, const std::vector<std::string>& names);

  // Comes before every name that Find looks for.
  void set_prefix(std::string_view prefix) { prefix_ = prefix; }

  // Gives *target the first of `names` that the library has. A missing one is remembered when it
  // is required, and *target stays null.
  template <class Function>
  void Find(Function** target, std::initializer_list<const char*> names, bool required = true) {
    *target = reinterpret_cast<Function*>(FindAddress(names, required));
  }

  const std::string& name() const { return name_; }
  // kUnavailable names the entry points that were required and are missing.
  Status Missing() const;

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* FindAddress(std::initializer_list<const char*> names, bool required);

  void* handle_;
  std::string name_;
  std::string prefix_;
  std::vector<std::string> missing_;
};

}  // namespace keel::vendor
