//! Arguments as Python gives them, with errors that name them.

use lowlat_node::{
    Keys, Overrun, Reads, ReadsFrom, Wait,
    records::{OrderType, Side},
};
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyTuple},
};
use std::borrow::Cow;

/// Whole numbers of a range.
pub trait Whole: for<'py> FromPyObjectOwned<'py> {
    const MIN: i128;
    const MAX: i128;
}

macro_rules! whole_types {
    ($($type:ty),*) => {
        $(impl Whole for $type {
            const MIN: i128 = <$type>::MIN as i128;
            const MAX: i128 = <$type>::MAX as i128;
        })*
    };
}
whole_types!(u16, u32, u64, i64);

/// A whole number in the range of its type.
#[inline]
pub fn whole<T: Whole>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<T> {
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        let found = shown(value);
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{name} {found}: expected {} to {}", T::MIN, T::MAX))
        } else {
            PyTypeError::new_err(format!("{name} {found}: expected a whole number"))
        }
    })
}

/// A whole number, or `None`.
pub fn whole_or_none<T: Whole>(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<T>> {
    value.map(|value| whole(value, name)).transpose()
}

/// A sequence of numbers.
pub fn numbers(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u32>> {
    let not_a_list = |_| PyTypeError::new_err(format!("{name} {}: expected a list of numbers", shown(value)));
    value.try_iter().map_err(not_a_list)?.map(|number| whole(&number?, name)).collect()
}

/// Bytes of any object with a buffer.
pub fn bytes<'a>(value: &'a Bound<'_, PyAny>, name: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(Cow::Owned(bytes.to_vec()));
    }
    let no_buffer = |_| {
        PyTypeError::new_err(format!(
            "{name} {}: expected bytes, or an object with a buffer such as bytearray, memoryview or an array",
            shown(value)
        ))
    };
    let copy = PyMemoryView::from(value).map_err(no_buffer)?.call_method0("tobytes")?;
    Ok(Cow::Owned(copy.cast::<PyBytes>()?.as_bytes().to_vec()))
}

pub fn side(side: &str) -> PyResult<Side> {
    match side {
        "buy" => Ok(Side::Buy),
        "sell" => Ok(Side::Sell),
        _ => Err(PyValueError::new_err(format!("side {side:?}: expected \"buy\" or \"sell\""))),
    }
}

/// The type of an order, by its word.
pub fn order_type(value: &Bound<'_, PyAny>) -> PyResult<OrderType> {
    let word = value.extract::<Cow<'_, str>>().unwrap_or_default();
    let found = OrderType::ALL.into_iter().find(|(_, known)| *known == word);
    found.map(|(order_type, _)| order_type).ok_or_else(|| {
        PyValueError::new_err(format!("type {}: expected \"limit\", \"market\" or \"ioc\"", shown(value)))
    })
}

pub fn wait(wait: &str) -> PyResult<Wait> {
    match wait {
        "parked" => Ok(Wait::Parked),
        "fast" => Ok(Wait::Fast),
        "adaptive" => Ok(Wait::Adaptive),
        _ => Err(PyValueError::new_err(format!(
            "wait {wait:?}: expected \"parked\", \"fast\" or \"adaptive\""
        ))),
    }
}

/// A word, or a word and a number.
fn word<'py>(value: &Bound<'py, PyAny>) -> (String, Option<Bound<'py, PyAny>>) {
    match value.extract() {
        Ok((word, number)) => (word, Some(number)),
        Err(_) => (value.extract().unwrap_or_default(), None),
    }
}

/// A policy for records that the node is too slow for: a word, or ("evict", number of records).
pub fn overrun(value: &Bound<'_, PyAny>) -> PyResult<Overrun> {
    let (word, number) = word(value);
    match (word.as_str(), number) {
        ("evict", Some(behind_max)) => {
            Ok(Overrun::Evict { behind_max: whole(&behind_max, "overrun: evict")? })
        }
        ("gap", None) => Ok(Overrun::Gap),
        ("conflate", None) => Ok(Overrun::Conflate),
        ("credit", None) => Ok(Overrun::Credit),
        _ => Err(PyValueError::new_err(format!(
            "overrun {}: expected \"gap\", \"conflate\", \"credit\" or (\"evict\", number of records)",
            shown(value)
        ))),
    }
}

/// The first record of a stream: a word, or ("after", sequence).
pub fn start(value: &Bound<'_, PyAny>) -> PyResult<ReadsFrom> {
    let (word, number) = word(value);
    match (word.as_str(), number) {
        ("after", Some(sequence)) => Ok(ReadsFrom::After(whole(&sequence, "start: after")?)),
        ("head", None) => Ok(ReadsFrom::Head),
        ("oldest", None) => Ok(ReadsFrom::Oldest),
        _ => Err(PyValueError::new_err(format!(
            "start {}: expected \"head\", \"oldest\" or (\"after\", sequence)",
            shown(value)
        ))),
    }
}

/// Streams to read: tuples of a stream, a selection and, if wanted, a policy and a start.
pub fn reads(value: &Bound<'_, PyAny>) -> PyResult<Vec<Reads>> {
    let expected = |found: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!(
            "reads {}: expected tuples of a stream, a selection and, if wanted, a policy for overruns and a start",
            shown(found)
        ))
    };
    let read = |item: Bound<'_, PyAny>| {
        let parts: Vec<Bound<'_, PyAny>> = match (item.cast::<PyTuple>(), item.cast::<PyList>()) {
            (Ok(tuple), _) => tuple.iter().collect(),
            (_, Ok(list)) => list.iter().collect(),
            _ => return Err(expected(&item)),
        };
        let (stream, wanted, policy, first) = match parts.as_slice() {
            [stream, wanted] => (stream, wanted, None, None),
            [stream, wanted, policy] => (stream, wanted, Some(policy), None),
            [stream, wanted, policy, first] => (stream, wanted, Some(policy), Some(first)),
            _ => return Err(expected(&item)),
        };
        let stream: String = stream.extract().map_err(|_| expected(&item))?;
        let keys = if wanted.is_none() {
            Keys::All
        } else if let Ok(word) = wanted.extract::<Cow<'_, str>>() {
            if word != "own" {
                let text = format!(
                    "reads of {stream:?}: found {word:?}, expected None, a list of instruments or \"own\""
                );
                return Err(PyValueError::new_err(text));
            }
            Keys::Own
        } else {
            Keys::Only(numbers(wanted, &format!("reads of {stream:?}"))?)
        };
        let policy = policy.map(overrun).transpose()?.unwrap_or_default();
        let first = first.map(start).transpose()?.unwrap_or_default();
        Ok(Reads::new(&stream, keys).with(policy).starting(first))
    };
    value.try_iter().map_err(|_| expected(value))?.map(|item| read(item?)).collect()
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
}
