#pragma once
#include <emulator/device_core.h>
#include <iterator>
namespace thrust {
// A pointer that algorithms know to be on the device.
template <typename T>
class device_ptr {
 public:
  using value_type = std::remove_cv_t<T>;
  using reference = T&;
  using pointer = T*;
  using difference_type = ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  device_ptr(std::nullptr_t = nullptr) {}
  explicit device_ptr(T* raw) : raw_(raw) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  device_ptr(const device_ptr<U>& other) : raw_(other.get()) {}
  T* get() const { return raw_; }
  T& operator*() const { return *raw_; }
  T* operator->() const { return raw_; }
  T& operator[](ptrdiff_t i) const { return raw_[i]; }
  device_ptr& operator++() { ++raw_; return *this; }
  device_ptr& operator--() { --raw_; return *this; }
  device_ptr operator++(int) { return device_ptr(raw_++); }
  device_ptr operator--(int) { return device_ptr(raw_--); }
  device_ptr& operator+=(ptrdiff_t by) { raw_ += by; return *this; }
  device_ptr& operator-=(ptrdiff_t by) { raw_ -= by; return *this; }
  friend device_ptr operator+(device_ptr p, ptrdiff_t by) { return device_ptr(p.raw_ + by); }
  friend device_ptr operator+(ptrdiff_t by, device_ptr p) { return device_ptr(p.raw_ + by); }
  friend device_ptr operator-(device_ptr p, ptrdiff_t by) { return device_ptr(p.raw_ - by); }
  friend ptrdiff_t operator-(device_ptr a, device_ptr b) { return a.raw_ - b.raw_; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.raw_ == b.raw_; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.raw_ != b.raw_; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.raw_ < b.raw_; }
  friend bool operator>(device_ptr a, device_ptr b) { return a.raw_ > b.raw_; }
  friend bool operator<=(device_ptr a, device_ptr b) { return a.raw_ <= b.raw_; }
  friend bool operator>=(device_ptr a, device_ptr b) { return a.raw_ >= b.raw_; }

 private:
  T* raw_ = nullptr;
};
template <typename T>
device_ptr<T> device_pointer_cast(T* pointer) { return device_ptr<T>(pointer); }
template <typename T>
device_ptr<T> device_pointer_cast(const device_ptr<T>& pointer) { return pointer; }
template <typename T>
T* raw_pointer_cast(T* pointer) { return pointer; }
template <typename T>
T* raw_pointer_cast(const device_ptr<T>& pointer) { return pointer.get(); }
template <typename T>
device_ptr<T> device_malloc(size_t count) {
  return device_ptr<T>(static_cast<T*>(::harness_emulator::allocate_device(count * sizeof(T))));
}
template <typename T>
void device_free(const device_ptr<T>& pointer) { ::harness_emulator::release_device(pointer.get()); }
}
