// Result<T>: a T, or the Status that says why there is none. And the two macros that pass an
// error on.
#pragma once

#include <cassert>
#include <type_traits>
#include <utility>
#include <variant>

#include "keel/base/status.h"

namespace keel {

template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cvref_t<T>, Status>, "return Status instead");

 public:
  using value_type = T;

  // Implicit on purpose: `return value;` and `return InvalidArgument(...);` both read well.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // `status` must be an error: an OK status carries no value, and becomes kInternal.
  Result(Status status)
      : state_(std::in_place_index<1>,
               status.ok() ? Internal("an OK status was returned where a value was due")
                           : std::move(status)) {}

  bool ok() const noexcept { return state_.index() == 0; }

  // The error, or OK.
  Status status() const& { return ok() ? Status() : *std::get_if<1>(&state_); }
  Status status() && { return ok() ? Status() : std::move(*std::get_if<1>(&state_)); }

  // The value. Precondition: ok() (asserted).
  T& value() & { return *Get(); }
  const T& value() const& { return *Get(); }
  T&& value() && { return std::move(*Get()); }
  T& operator*() & { return *Get(); }
  const T& operator*() const& { return *Get(); }
  T&& operator*() && { return std::move(*Get()); }
  T* operator->() { return Get(); }
  const T* operator->() const { return Get(); }

  template <class U>
  T value_or(U&& other) && {
    return ok() ? std::move(*Get()) : static_cast<T>(std::forward<U>(other));
  }

 private:
  T* Get() {
    assert(ok());
    return std::get_if<0>(&state_);
  }
  const T* Get() const {
    assert(ok());
    return std::get_if<0>(&state_);
  }

  std::variant<T, Status> state_;
};

}  // namespace keel

#define KEEL_CONCAT_INNER_(a, b) a##b
#define KEEL_CONCAT_(a, b) KEEL_CONCAT_INNER_(a, b)

// Returns the error of a Status expression to the caller, if it is one.
#define KEEL_TRY(expression)                                              \
  do {                                                                    \
    if (::keel::Status keel_status_ = (expression); !keel_status_.ok()) { \
      return keel_status_;                                                \
    }                                                                     \
  } while (false)

// Declares or assigns `target` from a Result expression, or returns its error to the caller:
// KEEL_ASSIGN(auto stream, Stream::Create(device));
#define KEEL_ASSIGN(target, expression) \
  KEEL_ASSIGN_INNER_(KEEL_CONCAT_(keel_result_, __LINE__), target, expression)
#define KEEL_ASSIGN_INNER_(result, target, expression) \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  target = *std::move(result)
